"""DESCRIBE: what the log and the splits say about a table."""
