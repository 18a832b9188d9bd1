"""Suite for asv."""
