"""The verbs of a table, one per file: a plan that is a value, then the run that carries it out."""
