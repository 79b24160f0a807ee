"""Measurements of IndexTables against named rivals on the same data; see README.md here."""
