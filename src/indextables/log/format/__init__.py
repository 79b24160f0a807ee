"""The format of log files: names and lines, checksums, the table they belong to, the protocol they need."""
