"""Making an index: tokens become sorted runs, and runs become the bytes of an index."""
