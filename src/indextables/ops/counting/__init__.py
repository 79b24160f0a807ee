"""Counting: groups, facets and histograms of rows, of the log's statistics and of the index."""
