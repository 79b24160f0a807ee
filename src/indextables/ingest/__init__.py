"""Rows from files: CSV, JSON lines, Parquet and plain logs, with columns that are guessed."""
