"""Searches one split: by its index where that decides, else by the text of its rows."""
