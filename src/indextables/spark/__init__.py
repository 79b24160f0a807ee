"""Tables as Spark sees them: the only package that imports pyspark."""
