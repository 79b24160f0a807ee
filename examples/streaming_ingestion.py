"""Take small batches in as they come: each one once, merged by itself, searchable after every commit.

Needs `pip install indextables`. It makes the table `clicks` in the current directory.
"""

import pyarrow as pa

import indextables as it

SCHEMA = pa.schema([("n", pa.int64()), ("page", pa.string()), ("message", pa.string())])
BATCHES, ROWS = 40, 250
MERGING = {"mergeOnWrite.enabled": "true"}


def batch(number: int) -> pa.Table:
    """What the source sends as batch `number`; asked again, it sends the same."""
    numbers = range(number * ROWS, (number + 1) * ROWS)
    pages = [f"/shop/{n % 17}" for n in numbers]
    said = ["payment declined" if n % 97 == 0 else "page viewed" for n in numbers]
    return pa.table({"n": list(numbers), "page": pages, "message": said}, SCHEMA)


def ingest(until: int) -> it.Table:
    """Send batches up to a number, from the beginning: those that are there already are not written again."""
    table = it.Table.open("clicks")
    for number in range(until):
        table.append(batch(number), options=MERGING, txn=it.TxnAction(app_id="click-stream", version=number))
    return table


it.Table.create("clicks", SCHEMA, options={"indexing.typemap.message": "text"})

table = ingest(until=BATCHES // 2)
print(f"stopped after {BATCHES // 2} batches: {table.count():,} rows, splits: {table.describe().num_files}")
table = ingest(until=BATCHES)
print(f"started again, sent all {BATCHES}: {table.count():,} rows, splits: {table.describe().num_files}")

done = table.history()["operation"].to_pylist()
print(f"{done.count('WRITE')} writes, {done.count('MERGE SPLITS')} merges")
last = table.search("declined", sort="n DESC", limit=1).to_pylist()[0]["n"]
print(f"{table.count(query='declined')} payments were declined, the last as row {last}")
