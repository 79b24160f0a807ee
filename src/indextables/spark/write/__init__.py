"""`save`: rows of a DataFrame become splits on the executors, then one commit names them."""
