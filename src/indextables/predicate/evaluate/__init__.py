"""Evaluates predicates over Arrow arrays, with Spark's casts and Spark's sort order."""
