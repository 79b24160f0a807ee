"""Ways to make a predicate tree: from SQL text, from Python expressions, from Spark's filters."""
