"""The sandbox as far as it is decided without I/O: whose it is (H1), what goes out (H3)."""
