"""The sandbox as far as it is decided without I/O: whose it is (H1), what was sent in (H2), what goes out (H3)."""
