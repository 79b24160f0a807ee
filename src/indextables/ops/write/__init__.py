"""Verbs that write rows: append, overwrite and replace-where, and what follows a write."""
