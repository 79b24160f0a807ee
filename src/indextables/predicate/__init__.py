"""Predicates: a small tree, three ways to build it, and two ways to use it.

`build` makes it from SQL text, Spark's filters or Python expressions. `prune` asks of a
file's statistics whether any row could match; `evaluate` decides for each row whether it
does. The semantics are Spark's, with ANSI casts.
"""
