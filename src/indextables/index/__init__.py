"""The search index on its own: built from Arrow columns into bytes, read by byte ranges into row numbers."""
