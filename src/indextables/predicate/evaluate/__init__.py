"""Which rows match: predicates evaluated over Arrow arrays, with Spark's casts and Spark's order."""
