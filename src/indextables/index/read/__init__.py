"""Reading an index by ranges: its words, their rows, phrases, scores, and what is cached."""
