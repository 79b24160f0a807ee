"""Splits: Parquet files that carry their own search index. Runs on executors and knows nothing of the log."""
