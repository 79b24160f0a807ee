"""Search a Delta table that is there already: as it is, and through an indexed copy that follows it.

Needs `pip install indextables deltalake`.
It makes the tables `orders-delta` and `orders` in the current directory.
"""

import deltalake
import pyarrow as pa

import indextables as it

NOTES = ("left at the door", "customer asks for a refund", "fragile, do not stack", "paid twice by mistake")


def orders(first: int, count: int) -> pa.Table:
    """Some orders with what people wrote about them."""
    numbers = range(first, first + count)
    days = [f"2026-11-{14 + n % 3}" for n in numbers]
    return pa.table({"id": list(numbers), "day": days, "note": [NOTES[n % len(NOTES)] for n in numbers]})


# Somebody else's table: Delta Lake wrote it, with two commits.
deltalake.write_deltalake("orders-delta", orders(0, 3000), partition_by=["day"])
deltalake.write_deltalake("orders-delta", orders(3000, 1000), mode="append")

source = it.DeltaTable.open("orders-delta")
print(f"1. Read it as it is: version {source.version}, {source.count():,} rows")
refunds = source.search("note:refund", where="day = '2026-11-15'", columns=["id", "day"])
print(f"   {len(refunds.to_arrow())} orders of one day ask for a refund")
print(f"   {source.last_scan.files_read} of {source.last_scan.files.considered} files were read")

indexed = it.Table.create("orders", source.schema, ["day"], options={"indexing.typemap.note": "text"})
indexed.append(source.scan(), txn=it.TxnAction(app_id="orders-delta", version=source.version))
print(f"2. Copy it with an index: {indexed.count(query='refund'):,} refunds, counted by the index")

# Later: the Delta table has grown, and the copy takes in what is new.
deltalake.write_deltalake("orders-delta", orders(4000, 500), mode="append")
source = it.DeltaTable.open("orders-delta")
indexed.append(source.scan("id >= 4000"), txn=it.TxnAction(app_id="orders-delta", version=source.version))
print(f"3. Follow it: version {source.version} of the source, {indexed.count():,} rows in the copy")
best = indexed.search(
    '"paid twice"', where="day = '2026-11-14'", sort="id DESC", limit=2, columns=["id", "note"]
)
for row in best.to_pylist():
    print(f"   {row['id']}: {row['note']}")
