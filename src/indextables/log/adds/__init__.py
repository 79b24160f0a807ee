"""Adds between text and columns: their lines in a checkpoint, their decoded fields, the files() form."""
