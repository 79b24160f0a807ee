"""The page behind `indextables serve`: search tables, look at their files and versions.

Requests come in through `app`, are let through by `guard`, read into a `RowRequest`
and answered from the tables' own verbs. Nothing here writes to a table.
"""
