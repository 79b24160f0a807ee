"""The command line: verbs in main and what they print in render."""
