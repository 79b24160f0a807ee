"""The command line: verbs in main, what they print in render, and a guided tour in demo."""
