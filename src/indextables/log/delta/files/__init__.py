"""The `files()` table of a Delta log: typed partition values, and statistics turned into safe bounds."""
