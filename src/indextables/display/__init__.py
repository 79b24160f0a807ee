"""How values, rows and results look to people: as JSON, as text and as HTML in a notebook."""
