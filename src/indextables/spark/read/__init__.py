"""`load`: a table version as a native Spark relation, and the planner that chooses its files."""
