"""The query language: its syntax, its tree, and how an index answers it."""
