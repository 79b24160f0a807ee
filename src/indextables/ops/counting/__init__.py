"""Aggregation: groups, facets and histograms, from the log's statistics, the index, or the rows."""
