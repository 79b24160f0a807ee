"""Reads rows of a split: whole row groups, single pages, or a few scattered rows."""
