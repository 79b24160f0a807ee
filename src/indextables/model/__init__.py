"""What the log speaks of: actions, fields, statistics and partition values."""
