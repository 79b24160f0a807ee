"""REPAIR: a clean log from a damaged one, or from the footers of the splits."""
