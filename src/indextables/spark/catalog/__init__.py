"""Named tables: the classes that Spark's catalogs and optimizer know, and what Python answers them."""

CATALOG = "io.indextables.Catalog"
EXTENSIONS = "io.indextables.Extensions"
