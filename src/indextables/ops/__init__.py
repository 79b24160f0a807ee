"""The verbs of a table, one per module: each makes a plan, which is a plain value, and then runs it."""
