"""Checkpoints of the native log: read and written, as a JSON document or as Parquet, in one part or many."""
