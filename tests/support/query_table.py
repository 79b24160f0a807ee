"""A few rows and what every kind of query finds in them, or why it is refused.

The same list is asked through Python, the command line and SQL.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("message", pa.string()), ("title", pa.string()), ("level", pa.string()),
        ("doc", pa.string()), ("ip", pa.string()), ("status", pa.int32()), ("day", pa.date32()),
        ("tags", pa.list_(pa.field("element", pa.string()))), ("note", pa.string()),
    ]
)  # fmt: skip
OPTIONS = {
    "indexing.typemap.message": "text", "indexing.typemap.title": "text", "indexing.tokenizer.title": "en_stem",
    "indexing.typemap.level": "string", "indexing.typemap.doc": "json", "indexing.typemap.ip": "ip",
    "indexing.fastfields": "status,day", "indexing.typemap.tags": "text",
}  # fmt: skip
_ROWS = [
    (1, "Connection reset by peer", "Running tests", "ERROR", '{"user": {"name": "alice"}, "code": 500}', "10.0.0.1", 500, 1, ["red", "dark blue"]),
    (2, "connection timed out after 30 seconds", "The runner ran", "error", '{"user": {"name": "Bob Smith"}, "code": 404}', "10.0.0.200", 404, 2, ["blue"]),
    (3, "timeout while reading from peer", "connected", "WARN", '{"code": 200, "tags": ["slow", "retry later"]}', "192.168.1.1", 200, 3, []),
    (4, "time-out: retry later", "Connections", "INFO", "not json", "::1", -5, 4, None),
    (5, "user not found", "tested and failing", "ERR OR", '{"a b": 1.5}', "fe80::1", None, 5, ["light red", "sky"]),
    (6, "AT&T and C++ users", "test", "a*b", None, "nonsense", 0, None, [None, "x-ray"]),
    (7, "naïve ÉTÉ 日本語 x_y", None, "", "{}", None, 7, 7, [""]),
    (8, None, "", None, '{"flag": true}', "10.0.0.1", 500, 1, ["timeout"]),
    (9, "", "time", "x y", '{"code": "500"}', "10.1.0.0", 599, 9, ["blue dark"]),
    (10, "error Error ERROR errors terror", "errors", "warn", '{"user": "alice"}', "10.0.0.9", 503, 10, ["dark", "blue"]),
]  # fmt: skip


def rows(first: int = 0, last: int = len(_ROWS)) -> pa.Table:
    """Some of the rows."""
    some = [
        (*row[:7], None if row[7] is None else dt.date(2024, 1, row[7]), row[8], "unindexed")
        for row in _ROWS[first:last]
    ]
    return pa.table([list(column) for column in zip(*some, strict=True)], schema=SCHEMA)


ALL = list(range(1, 11))
FOUND: dict[str, list[int]] = {
    # Words
    "message:peer": [1, 3], "message:PEER": [1, 3], "message:Peer": [1, 3], "peer": [1, 3], "message:zebra": [],
    "message:time": [4], "message:timeout": [3], "message:time-out": [4],
    "message:it's": [], "message:30": [2], "message:x_y": [7], "message:日本語": [7], "message:été": [7],
    "message:naïve": [7], "message:naive": [], "message:errors": [10], "message:user": [5], "message:users": [6],
    "title:running": [1], "title:run": [1], "title:runs": [1], "title:tests": [1, 5, 6], "title:connection": [3, 4],
    "tags:blue": [1, 2, 9, 10], "tags:x-ray": [6], "timeout": [3, 8], "alice": [1, 10],
    # Signs and operators
    "peer timeout": [1, 3, 8], "peer OR timeout": [1, 3, 8], "peer || timeout": [1, 3, 8], "peer or timeout": [1, 3, 8], "peer and timeout": [1, 3, 5, 6, 8],
    "peer AND timeout": [3], "peer && timeout": [3], "+peer +timeout": [3],
    "peer AND reading AND timeout": [3], "peer&&timeout": [3], "peer||timeout": [1, 3, 8],
    "peer -timeout": [1], "peer NOT timeout": [1], "peer !timeout": [1], "+peer -timeout": [1],
    "peer AND NOT timeout": [1], "peer AND -timeout": [1], "peer && !timeout": [1], "-timeout peer": [1],
    "NOT peer": [2, 4, 5, 6, 7, 8, 9, 10], "!peer": [2, 4, 5, 6, 7, 8, 9, 10], "-peer": [2, 4, 5, 6, 7, 8, 9, 10],
    "NOT NOT peer": [1, 3], "-peer -timeout": [2, 4, 5, 6, 7, 9, 10], "NOT peer AND NOT timeout": [2, 4, 5, 6, 7, 9, 10],
    "NOT (peer OR timeout)": [2, 4, 5, 6, 7, 9, 10], "peer OR NOT message:*": [1, 3, 8], "peer OR -message:*": [1, 3, 8],
    "+peer timeout": [1, 3], "+peer timeout -reset": [3], "peer OR reset AND zebra": [1, 3], "(peer OR reset) AND zebra": [],
    "zebra AND reset OR peer": [1, 3], "peer (timeout reset)": [1, 3, 8], "(peer)": [1, 3], "((peer))": [1, 3],
    "(peer timeout) -reset": [3, 8], "peer AND (timeout OR reset)": [1, 3], "+(peer timeout) +reading": [3],
    "+peer AND timeout": [3], "message:peer AND level:ERROR": [1], "message:peer level:error": [1, 2, 3],
    # Words that look like operators
    "and": [5, 6], '"and"': [5, 6], "message:and": [6], 'message:"not found"': [5], "message:not": [5], "not": [5],
    "did not respond": [5], "to be or not to be": [5], "user AND not AND found": [5], "message:(not peer)": [1, 3, 5], "-not peer": [1, 3],
    "AT\\&T": [6], '"AT&T"': [6], "C++": [6], "\\AND": [5, 6], "\\-peer": [1, 3], "\\(peer\\)": [1, 3],
    # Columns
    "message:(peer timeout)": [1, 3], "message:(peer AND timeout)": [3], "message:(peer -timeout)": [1], "message: peer": [1, 3],
    "MESSAGE:peer": [1, 3], "level:(ERROR OR message:reading)": [1, 3], "level:ERROR": [1], "level:error": [2], "level:Error": [],
    'level:"ERR OR"': [5], "level:ERR\\ OR": [5], "level:a\\*b": [6], 'level:"a*b"': [6], 'level:"x y"': [9], "level:x\\ y": [9],
    "level:ERR": [], "level: IN [ERROR error]": [1, 2], 'level:IN [ERROR "ERR OR"]': [1, 5], "level: IN [zebra]": [],
    "message: IN [peer found]": [1, 3, 5],
    # Every row, and rows with a value
    "*": ALL, "*:*": ALL, "message:*": [1, 2, 3, 4, 5, 6, 7, 9, 10], "NOT message:*": [8], "level:*": [1, 2, 3, 4, 5, 6, 7, 9, 10],
    "message:[* TO *]": [1, 2, 3, 4, 5, 6, 7, 9, 10], "status:*": [1, 2, 3, 4, 6, 7, 8, 9, 10], "-*": [], "tags:*": [1, 2, 3, 5, 6, 7, 8, 9, 10],
    "doc.user:*": [1, 2, 10], "doc.user.name:*": [1, 2], "* -message:*": [8], "day:*": [1, 2, 3, 4, 5, 7, 8, 9, 10], "ip:*": [1, 2, 3, 4, 5, 6, 8, 9, 10],
    # Phrases
    '"connection reset"': [1], "'connection reset'": [1], '"reset connection"': [], '"connection peer"': [], '"connection peer"~1': [],
    '"connection peer"~2': [1], '"timed after"~1': [2], '"timed after"': [], '"peer"': [1, 3], '"time out"': [4], '"C++"': [6],
    '"connection res"*': [1], '"connection t"*': [2], '"time o"*': [4], 'message:"by peer"': [1], '"dark blue"': [1], 'tags:"dark blue"': [1],
    'tags:"blue dark"': [9], 'tags:"red dark"': [], 'title:"runner ran"': [2], 'title:"run test"': [1], '"a \\"b\\""': [], '"日本語 x"': [7],
    'level:"ERROR"': [1], '""': [7], '"!!!"': [], 'message:"retry later"': [4], '"retry later"': [3, 4],
    # Prefixes and wildcards
    "conn*": [1, 2, 3, 4], "message:conn*": [1, 2], "message:CONN*": [1, 2], "message:t*": [2, 3, 4, 6, 10], "message:time*": [2, 3, 4],
    "message:t?me": [4], "message:t?meout": [3], "message:?eer": [1, 3], "message:*out": [2, 3, 4], "message:*o*t": [2, 3, 4, 5],
    "message:?": [6, 7], "message:???": [2, 4, 5, 6, 7], "message:**": [1, 2, 3, 4, 5, 6, 7, 10],
    "message:t*e*o*t": [3], "message:*本語*": [7], "message:本": [7], "message:na*ve": [7], "message:É?É": [7], "message:*rr*": [10], "message:?error": [10],
    "level:E*": [1, 5], "level:e*": [2], "level:?RROR": [1], "level:*R": [1, 5], "level:* *": ALL, "level:*\\ *": [5, 9],
    "level:a\\**": [6], "level:a?b": [6], "title:runn*": [2], "title:tes?": [1, 5, 6], "doc:ali?e": [1, 10], "doc.user.name:*i*": [1, 2],
    "doc.code:5?0": [1, 9], "tags:?lue": [1, 2, 9, 10], "tags:d*k": [1, 9, 10], "-message:*out": [1, 5, 6, 7, 8, 9, 10],
    # Similar words
    "message:timeout~1": [3], "message:timeuot~1": [3], "message:timeuot~": [3], "message:timeot~1": [3], "message:tiemotu~1": [],
    "message:tiemotu~2": [3], "message:peer~0": [1, 3], "message:pear~1": [1, 3], "message:eror~1": [10], "message:terror~1": [10],
    "message:errors~2": [10], "message:naive~1": [7], "message:日誤~1": [7], "level:eRROR~1": [1], "level:ERRORS~1": [1],
    "title:tset~1": [1, 5, 6], "doc:alcie~1": [1, 10], "tags:bule~1": [1, 2, 9, 10], "message:zzzzzz~2": [], "message:usr~1": [5],
    # Regular expressions
    "message:/p.*r/": [1, 3], "message:/pee/": [], "message:/(peer|found)/": [1, 3, 5], "message:/err.*/": [10], "message:/.*err.*/": [10],
    "message:/[0-9]+/": [2], "message:/t[iou]+me?out/": [3], "level:/[A-Z]+/": [1, 3, 4], "level:/.* .*/": [5, 9], "level:/(?i)error/": [1, 2],
    "message:/日.*/": [7], "doc:/ali.e/": [1, 10], "tags:/b..e/": [1, 2, 9, 10], "/p..r/": [1, 3], "message:/x.*/ OR message:/peer/": [1, 3, 7],
    "-/p..r/": [2, 4, 5, 6, 7, 8, 9, 10], "level:/a\\*b/": [6], "message:/a|and/": [6],
    # Ranges and comparisons
    "status:500": [1, 8], "status:[500 TO 599]": [1, 8, 9, 10], "status:[500 TO 599}": [1, 8, 10], "status:{500 TO 599}": [10], "status:{500 TO *]": [9, 10],
    "status:>=500": [1, 8, 9, 10], "status:>500": [9, 10], "status:<0": [4], "status:<=0": [4, 6], "status:-5": [4], "status:[-5 TO 0]": [4, 6],
    "status:>= 503": [9, 10], "NOT status:>0": [4, 5, 6], "status:[* TO 7]": [4, 6, 7], "status: IN [404 503]": [2, 10], "status:(404 OR 503)": [2, 10],
    "day:2024-01-01": [1, 8], "day:[2024-01-02 TO 2024-01-04]": [2, 3, 4], "day:>2024-01-05": [7, 9, 10], "message:[t TO u]": [2, 3, 4, 6, 10],
    "message:>t": [2, 3, 4, 5, 6, 7, 10], "message:[peer TO peer]": [1, 3], "level:[ERROR TO WARN]": [1, 3, 4], "level:<A": [7], "ip:10.0.0.1": [1, 8],
    "ip:10.0.0.0/24": [1, 2, 8, 10], "ip:[10.0.0.1 TO 10.0.0.9]": [1, 8, 10], "ip:::1": [4], 'ip:"::1"': [4], "ip:fe80::1": [5], "ip:>10.0.0.9": [2, 3, 5, 9],
    "ip:10.*": [1, 2, 8, 9, 10], "ip:10.0.*": [1, 2, 8, 10], "ip:10.0.0.*": [1, 2, 8, 10], "ip:10.1.*.*": [9], "ip:fe80:*": [5], "NOT ip:10.*": [3, 4, 5, 6, 7],
    "doc.code:500": [1, 9], "doc.code:[400 TO 500]": [1, 2], "doc.code:>=404": [1, 2], "doc.user.name:alice": [1], 'doc.user.name:"bob smith"': [2],
    "doc.flag:true": [8], "doc.a\\ b:1.5": [5], "doc.tags:retry": [3], "doc.zebra:1": [],
    # Columns without a search field
    "note:unindexed": ALL, "note:x": [], "NOT note:x": ALL, "note:un*": ALL, "note:*dex*": ALL, "note:/un.+/ AND peer": [1, 3], "note:unindexd~1": ALL,
    "id:3": [3], "id:>=9": [9, 10], "id: IN [2 5 99]": [2, 5], "id:[2 TO 4} OR reset": [1, 2, 3], "peer -id:3": [1], "note:[a TO v]": ALL, "note:Unindexed": [],
    # Boosts
    "peer^2": [1, 3], "peer^0.5 timeout": [1, 3, 8], "(peer timeout)^3 -reset": [3, 8], '"by peer"^2': [1], "message:peer^2": [1, 3], "t?meout^2": [3, 8],
    "timeout~1^2": [3, 8], "status:>=500^2": [1, 8, 9, 10], "peer^0": [1, 3],
}  # fmt: skip

TEXTS: dict[str, list[int]] = {
    "peer by reset": [1], "[Connection] (reset), by/peer!": [1], "time-out: retry": [4], "user not found": [5], "peer AND reading": [],
    "500": [1, 8, 9], "reset ERROR 500": [1], "10.0.0.1 timeout": [8], "C++ && AT&T": [6], "naïve x_y": [7], "message:peer": [], "(dark} blue": [1, 9, 10],
    "runs ERROR": [1], "runs error": [], "日本語": [7], '{"name": "alice"}': [], "alice": [1, 10], "---": [], "": [], "[error] terror": [10], "level=ERROR": [],
}  # fmt: skip
"""What plain texts find: rows that hold every piece between spaces, each with all its words in one column."""

WITH_LOWERCASE_OPERATORS: dict[str, list[int]] = {
    "peer or timeout": [1, 3, 8], "peer and timeout": [3], "(peer and timeout) or reset": [1, 3], "and": [5, 6], "not": [5],
}  # fmt: skip
"""What queries find with the option search.lowercaseOperators, which reads them as 0.2 did."""

REFUSED: dict[str, str] = {
    "": "empty", "   ": "empty", "peer &": "single '&'", "peer & timeout": "write && or AND", "peer | timeout": "write || or OR",
    "AT&T": "single '&'", "peer AND": "right operand", "AND peer": "left operand",
    "peer AND OR timeout": "left operand", "peer NOT": "operand", "+": "lone", "peer -": "lone", "--peer": "sign", "+-peer": "sign",
    "+peer OR timeout": "beside OR", "(peer": "expected ')'", "peer)": "closes no bracket", "()": "nothing between", "f(x)": "right after",
    '"peer': "not closed", "'tis": "not closed", 'a"b"': "right after", "“peer”": "only the plain ones", "peer\\": "backslash", "a:b": "no column 'a'",
    "12:30": "double quotes", "http://x": "double quotes", "/var/log": "regular expression", "/x": "not closed", "/(/": "RE2",
    "timeout~3": "more than 2", "timeout~0.5": "whole number", "t?me~1": "wildcards", "time-out~1": "not one word", "message:time-o?t": "single word",
    "peer^": "number", "peer^x": "number", "^2": "nothing before", "~2": "nothing before", "message:": "nothing follows", "mes*:x": "wildcard in the name",
    "*:x": "'*' in place", "message:-peer": "write -message:word", "message:!peer": "write !message:word", "message:NOT peer": "NOT behind",
    "message:a b:c:d": "':' right after a word", "status:x": "not a value", "status:5*": "holds values", "status:[1 2]": "without TO", "status:[1 TO": "ends",
    "status:[1 TO 2": "not closed", "status:>": "ends", "ip:300.0.0.1": "neither an IP", "ip:10*": "neither an IP", "ip:10.*.1": "neither an IP", "ip:10.*.*.*.*": "neither an IP", "ip:300.*": "neither an IP", "day:soon": "not a value",
    "level: IN []": "empty list", "level: IN [a": "not closed", "level=ERROR": "write level:ERROR", "_exists_:level": "column:*", "peer]": "right after",
    "{peer}": "without TO", "[a]": "without TO", '"a b"~': "number", '"a b"~1.5': "whole number", "message:[a-b TO c]": "not one word",
}  # fmt: skip
