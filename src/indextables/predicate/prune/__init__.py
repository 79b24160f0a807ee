"""Which files can hold a matching row: the rule, and the facts it asks of one file or of many."""
