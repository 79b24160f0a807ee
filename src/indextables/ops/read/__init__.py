"""Verbs that read rows: scan, count and search."""
