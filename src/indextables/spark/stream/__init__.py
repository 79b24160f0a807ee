"""Streams from a table and into a table."""
