"""What weak models need beside the one loop: tools told in words, calls read from text, corrections (S1-S8)."""
