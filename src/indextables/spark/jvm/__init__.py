"""Our Java classes: their sources, the jar made of them, and the one way in which they call Python."""

CATALOG = "io.indextables.Catalog"
EXTENSIONS = "io.indextables.Extensions"
