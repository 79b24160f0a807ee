"""What log files look like: names and lines, checksum, the table they belong to, the protocol they need."""
