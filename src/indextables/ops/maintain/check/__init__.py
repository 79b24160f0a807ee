"""CHECK INDEXTABLES: what is wrong with a table, what follows from it, and which command helps."""
