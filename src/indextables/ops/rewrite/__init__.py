"""Verbs that change which files or rows are live: delete, drop partitions, merge splits, restore."""
