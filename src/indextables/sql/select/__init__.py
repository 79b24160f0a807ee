"""SELECT: searches and tables by path inside a query, for Spark and for DuckDB."""
