"""The byte format of an index: numbers, lists of rows, dictionary blocks, row lengths and the root."""
