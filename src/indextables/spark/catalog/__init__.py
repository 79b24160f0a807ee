"""Named tables: the requests of our classes in Spark's catalog and optimizer, answered in Python."""

CATALOG = "io.indextables.Catalog"
EXTENSIONS = "io.indextables.Extensions"
