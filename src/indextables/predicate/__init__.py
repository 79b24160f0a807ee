"""Predicates: a small tree, three ways to build it, and two ways to use it.

`parse` builds it from SQL text, `typed` from Spark's filters, `expr` from Python
calls. `prune` asks of a file's statistics whether any row could match; `rows`
asks of each row whether it does. All meaning is Spark's, with ANSI casts.
"""
