"""Options of other systems that mean nothing here, and what to do instead.

People bring them along from IndexTables for Spark, the JVM system. The nearest
name among ours would be a wrong guess, so each gets a sentence of its own.
"""

from __future__ import annotations

_ALL_ROWS = "a read returns every row here; write LIMIT in the query where you want fewer"
_NO_TUNING = "rows are fetched by ranges that need no tuning here; leave it out"
_CACHE = "indexes are read by ranges here; set indexCache.dir to keep what was read on a local disk"
_PREWARM = "nothing has to be loaded beforehand here; leave it out"
_WRITER = "a writer keeps to bounded memory by itself; write.targetSplitBytes sets the size of splits"
_NO_END = "only a read of changes has an end; a stream goes on until it is stopped"
_COUNTS = "what an index can count is counted by it without being told to; leave it out"

INSTEAD = {
    "read.defaultlimit": _ALL_ROWS,
    "read.mode": _ALL_ROWS,
    "read.batchoptimization.": _NO_TUNING,
    "read.adaptivetuning.": _NO_TUNING,
    "read.columnar.": _NO_TUNING,
    "read.splitspertask": _NO_TUNING,
    "read.maxsplitspertask": _NO_TUNING,
    "read.requireaggregatepushdown": _COUNTS,
    "docbatch.": _NO_TUNING,
    "cache.": _CACHE,
    "prewarm.": _PREWARM,
    "indexwriter.": _WRITER,
    "write.arrowffi.": _WRITER,
    "readchangedata": "it is called readChangeFeed",
    "endingversion": _NO_END,
    "endingtimestamp": _NO_END,
    "enablechangedatafeed": "every table has changes here, with nothing to switch on; leave it out",
    "changedatafeed.": "every table has changes here, with nothing to switch on; leave it out",
    "companion.": "a companion is made by BUILD INDEXTABLES COMPANION or it.companion, whose clauses say it",
}
"""The beginning of a key, in lower case and without its prefix, and what to do instead."""


def instead_of(bare: str) -> str | None:
    """What to do instead of an option that only another system has; None for any other key."""
    key = bare.lower()
    return next((advice for start, advice in INSTEAD.items() if key.startswith(start)), None)
