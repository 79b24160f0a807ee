"""The transaction log: from a directory listing to a snapshot, and from a plan to a commit.

In the order data flows: dialect (names and lines) -> segment (which files make
a version) -> checkpoint -> replay and its engines -> snapshot -> commit ->
retention, and the public handle in transaction_log.
"""
