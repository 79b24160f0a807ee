"""Reading rows of a split: whole row groups, chosen pages, or a few rows far apart."""
