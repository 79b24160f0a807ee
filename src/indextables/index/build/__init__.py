"""Builds an index: tokens become sorted runs, and runs are merged into the bytes of an index."""
