"""DuckDB as an engine: one database per process, and filters written as its conditions."""
