"""The search index by itself: Arrow columns in, bytes out; later ranges of bytes in, row numbers out."""
