"""The transaction log: from a directory listing to a snapshot, and from a plan to a commit.

In the order in which data flows: `format` (names and lines) -> `segment` (the files of a
version) -> `checkpoint` -> `replay` (the live files) -> `snapshot` -> `commit` ->
`retention`; `transaction_log` is the public handle.
"""
