"""Forms of logs, written by hand as programs write them, and the columns that they get."""

import os
from datetime import UTC, datetime

import pytest

import indextables as it
from indextables.ingest.files import open_input

TEN = "2024-05-03T10:00:05+00:00"
MILLIS = "2024-05-03T10:00:05.123000+00:00"
MICROS = "2024-05-03T10:00:05.123456+00:00"
EARLIER = "2024-05-03T08:00:05+00:00"

FORMS = {
    "iso": ("2024-05-03 10:00:05 the disk is full", {"ts": TEN, "message": "the disk is full"}),
    "iso with an offset": ("2024-05-03T10:00:05+02:00 plain words", {"ts": EARLIER, "message": "plain words"}),
    "iso of Python": ("2024-05-03 10:00:05,123 ERROR disk is full", {"ts": MILLIS, "level": "ERROR", "message": "disk is full"}),
    "Python's logging": ("2024-05-03 10:00:05,123 - app.db - WARNING - slow query", {"ts": MILLIS, "program": "app.db", "level": "WARNING", "message": "slow query"}),
    "iso in brackets": ("[2024-05-03T10:00:05Z] [info] [worker-7] shop.Cart: added", {"ts": TEN, "level": "info", "thread": "worker-7", "program": "shop.Cart", "message": "added"}),
    "level before the time": ("INFO 2024-05-03 10:00:05 started", {"ts": TEN, "level": "INFO", "message": "started"}),
    "level in brackets before the time": ("[WARN] [2024-05-03 10:00:05] low on memory", {"ts": TEN, "level": "WARN", "message": "low on memory"}),
    "log4j": ("24/05/03 10:00:05 INFO executor.Executor: Running task 3", {"ts": TEN, "level": "INFO", "program": "executor.Executor", "message": "Running task 3"}),
    "logback": ("2024-05-03 10:00:05.123 [main] INFO  com.example.App - ready", {"ts": MILLIS, "thread": "main", "level": "INFO", "program": "com.example.App", "message": "ready"}),
    "Spring Boot": ("2024-05-03 10:00:05.123  WARN 4711 --- [main] c.e.App : odd", {"ts": MILLIS, "level": "WARN", "message": "4711 --- [main] c.e.App : odd"}),
    "Hadoop": ("2024-05-03 10:00:05,123 INFO [IPC Server 8] org.apache.Client: retry", {"ts": MILLIS, "level": "INFO", "thread": "IPC Server 8", "program": "org.apache.Client", "message": "retry"}),
    "HDFS": ("240503 100005 148 INFO dfs.DataNode$Receiver: block 7 received", {"ts": TEN, "pid": 148, "level": "INFO", "program": "dfs.DataNode$Receiver", "message": "block 7 received"}),
    "syslog": ("May  3 10:00:05 web1 sshd[712]: Accepted key for bob", {"ts": TEN, "host": "web1", "program": "sshd", "pid": 712, "message": "Accepted key for bob"}),
    "syslog without a process": ("May  3 10:00:05 web1 kernel: eth0 is up", {"ts": TEN, "host": "web1", "program": "kernel", "message": "eth0 is up"}),
    "syslog with a priority": ("<34>May  3 10:00:05 web1 su[9]: failed for root", {"ts": TEN, "priority": 34, "host": "web1", "program": "su", "pid": 9, "message": "failed for root"}),
    "syslog of a file on disk": ("2024-05-03T10:00:05.123456+00:00 web1 cron[33]: (root) CMD (true)", {"ts": MICROS, "host": "web1", "program": "cron", "pid": 33, "message": "(root) CMD (true)"}),
    "RFC 5424": ('<165>1 2024-05-03T10:00:05.123Z web1 shop 8710 ID47 [a@1 k="v]"] it began', {"ts": MILLIS, "priority": 165, "host": "web1", "program": "shop", "pid": 8710, "msgid": "ID47", "data": '[a@1 k="v]"]', "message": "it began"}),
    "RFC 5424 without data": ("<165>1 2024-05-03T10:00:05Z web1 shop - - - it began", {"ts": TEN, "priority": 165, "host": "web1", "program": "shop", "message": "it began"}),
    "journald short-iso": ("2024-05-03T12:00:05+0200 web1 systemd[1]: Started shop.", {"ts": TEN, "host": "web1", "program": "systemd", "pid": 1, "message": "Started shop."}),
    "Cisco": ("May  3 2024 10:00:05 fw1 ids[2]: teardown", {"ts": TEN, "host": "fw1", "program": "ids", "pid": 2, "message": "teardown"}),
    "Apache error 2.2": ("[Fri May 03 10:00:05 2024] [error] [client 10.0.0.7] no such file", {"ts": TEN, "level": "error", "message": "[client 10.0.0.7] no such file"}),
    "Apache error 2.4": ("[Fri May 03 10:00:05.123456 2024] [core:error] [pid 35708:tid 43286] [client 10.0.0.7] no such file", {"ts": MICROS, "level": "error", "pid": 35708, "thread": "43286", "message": "[client 10.0.0.7] no such file"}),
    "Apache access": ('10.0.0.7 - bob [03/May/2024:12:00:05 +0200] "GET /a HTTP/1.1" 200 512', {"ts": TEN, "client": "10.0.0.7", "user": "bob", "message": "GET /a HTTP/1.1", "status": 200, "bytes": 512}),
    "access with agents": ('10.0.0.7 - - [03/May/2024:10:00:05 +0000] "GET /a HTTP/1.1" 304 - "-" "curl/8"', {"ts": TEN, "client": "10.0.0.7", "message": "GET /a HTTP/1.1", "status": 304, "agent": "curl/8"}),
    "nginx with extra fields": ('10.0.0.7 - - [03/May/2024:10:00:05 +0000] "GET /a HTTP/1.1" 200 9 "http://x/" "curl/8" rt=0.005 "-"', {"ts": TEN, "client": "10.0.0.7", "message": "GET /a HTTP/1.1", "status": 200, "bytes": 9, "referrer": "http://x/", "agent": "curl/8", "extra": 'rt=0.005 "-"'}),
    "nginx with escaped quotes": ('10.0.0.7 - - [03/May/2024:10:00:05 +0000] "GET /a?q=\\"x\\" HTTP/1.1" 200 9 "-" "an \\"odd\\" one"', {"ts": TEN, "client": "10.0.0.7", "message": 'GET /a?q=\\"x\\" HTTP/1.1', "status": 200, "bytes": 9, "agent": 'an \\"odd\\" one'}),
    "nginx error": ("2024/05/03 10:00:05 [error] 31#0: *7 open() failed", {"ts": TEN, "level": "error", "pid": 31, "message": "*7 open() failed"}),
    "Go": ("2024/05/03 10:00:05 listening on :8080", {"ts": TEN, "message": "listening on :8080"}),
    "klog": ("E0503 10:00:05.123456    4711 server.go:42] refused", {"ts": MICROS, "level": "E", "pid": 4711, "program": "server.go:42", "message": "refused"}),
    "logfmt": ('time=2024-05-03T10:00:05Z level=info msg="user logged in" user=7', {"ts": TEN, "level": "info", "message": 'msg="user logged in" user=7'}),
    "docker": ('{"log":"listening on 80\\n","stream":"stdout","time":"2024-05-03T10:00:05.123456789Z"}', {"ts": MICROS, "message": "listening on 80", "stream": "stdout"}),
    "JSON with an epoch": ('{"severity":"warn","msg":"odd","ts":1714730405.123,"shard":3,"at":{"x":1}}', {"ts": MILLIS, "level": "warn", "message": "odd", "shard": 3, "at": '{"x":1}'}),
    "CRI": ("2024-05-03T10:00:05.123456789Z stderr F it broke", {"ts": MICROS, "stream": "stderr", "message": "it broke"}),
    "docker compose": ("web_1  | 2024-05-03 10:00:05 INFO up", {"ts": TEN, "program": "web_1", "level": "INFO", "message": "up"}),
    "Windows CBS": ("2024-05-03 10:00:05, Info                  CBS    Session started", {"ts": TEN, "level": "Info", "program": "CBS", "message": "Session started"}),
    "epoch seconds": ("1714730405 job 7 is done", {"ts": TEN, "message": "job 7 is done"}),
    "epoch millis": ("1714730405123 DEBUG job 7 is done", {"ts": MILLIS, "level": "DEBUG", "message": "job 7 is done"}),
    "epoch and a readable time": ("- 1714730405 2024.05.03 n7 May 3 03:00:05 n7/n7 crond[29]: opened", {"ts": TEN, "host": "n7/n7", "program": "crond", "pid": 29, "message": "- 2024.05.03 n7 May 3 03:00:05 opened"}),
    "Android": ("05-03 10:00:05.123  1702  2395 D WindowManager: printing", {"ts": MILLIS, "pid": 1702, "thread": "2395", "level": "D", "program": "WindowManager", "message": "printing"}),
    "Postgres": ("2024-05-03 10:00:05.123 UTC [4711] LOG:  checkpoint starting", {"ts": MILLIS, "pid": 4711, "level": "LOG", "message": "checkpoint starting"}),
    "a name before the time": ("nova.log.1.2017-05-16_13:53:08 2024-05-03 10:00:05.123 25746 INFO nova.wsgi [req-7] got", {"ts": MILLIS, "pid": 25746, "level": "INFO", "program": "nova.wsgi", "message": "nova.log.1.2017-05-16_13:53:08 [req-7] got"}),
    "Tomcat": ("03-May-2024 10:00:05.123 INFO [main] org.apache.catalina.Server: started", {"ts": MILLIS, "level": "INFO", "thread": "main", "program": "org.apache.catalina.Server", "message": "started"}),
    "no time": ("no time at all", {"message": "no time at all"}),
}  # fmt: skip


def rows_of(tmp_path, text, name="x.log", **more):
    path = tmp_path / name
    path.write_text(text)
    may = datetime(2024, 5, 20, tzinfo=UTC).timestamp()
    os.utime(path, (may, may))
    source = open_input([str(path)], None, **more)
    rows = [row for batch in source.batches() for row in batch.cast(source.schema).to_pylist()]
    return [
        {key: value.isoformat() if key == "ts" and value else value for key, value in row.items()}
        for row in rows
    ]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_recognised_and_has_no_empty_column(tmp_path, name):
    line, expected = FORMS[name]
    assert rows_of(tmp_path, f"{line}\n" * 3) == [expected] * 3


TRACE = """2024-05-03 10:00:05 ERROR request failed
Traceback (most recent call last):
  File "a.py", line 1, in <module>

    go()
ValueError: no
2024-05-03 10:00:06 INFO next
java.lang.IllegalStateException: off
\tat com.example.App.run(App.java:7)
Caused by: java.io.IOException
\t... 7 more
words without a time
2024-05-03 10:00:07 INFO last
  with more
"""


@pytest.mark.parametrize("block_bytes", [40, 4 << 20])
def test_a_stack_trace_is_part_of_the_row_of_its_line(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr("indextables.ingest.streams.BLOCK_BYTES", block_bytes)
    rows = rows_of(tmp_path, TRACE)
    assert [row["message"].count("\n") for row in rows] == [4, 4, 0, 1]
    assert rows[0]["message"].startswith("request failed\nTraceback")
    assert rows[1]["message"].endswith("\t... 7 more")
    assert (rows[2]["ts"], rows[2]["message"]) == (None, "words without a time")
    assert rows[3]["message"] == "last\n  with more"


def test_the_end_of_a_load_says_what_became_of_the_lines(run, tmp_path):
    (tmp_path / "x.log").write_text(TRACE)
    code, out, err = run("load", tmp_path / "x.log", "--to", tmp_path / "t")
    assert (code, err) == (0, "")
    assert "14 lines, 4 rows; 9 lines of stack traces joined" in out
    assert "3 of 4 rows have a time; 1 do not: the first is line 12: 'words without a time'" in out


def test_a_trace_without_end_does_not_become_one_row(tmp_path):
    rows = rows_of(tmp_path, "2024-05-03 10:00:05 INFO a\n" + "  more\n" * 2000)
    assert [row["message"].count("more") for row in rows] == [500, 501, 501, 498]


@pytest.mark.parametrize("verb", ["load", "tail"])
def test_the_whole_line_can_be_kept_and_short_messages_are_searchable(run, tmp_path, verb):
    (tmp_path / "x.log").write_text("2024-05-03 10:00:05 up\n2024-05-03 10:00:06 down\n  at x\n")
    code, _, err = run(verb, tmp_path / "x.log", "--to", tmp_path / "t", "--raw")
    assert code == 0, err
    table = it.Table.open(tmp_path / "t")
    assert table.scan(columns=["_raw"]).read_all()["_raw"].to_pylist() == [
        "2024-05-03 10:00:05 up",
        "2024-05-03 10:00:06 down\n  at x",
    ]
    assert table.count(query="down") == 1


def test_pairs_are_columns_if_that_is_said(tmp_path):
    line = '2024-05-03 10:00:05 INFO took=7ms, user="bob \\"b\\"" (code=3) done\n'
    plain = {"ts": TEN, "level": "INFO", "message": line[25:-1]}
    assert rows_of(tmp_path, line) == [plain]
    assert rows_of(tmp_path, line, with_pairs=True) == [
        {**plain, "took": "7ms", "user": 'bob "b"', "code": "3"}
    ]


def test_pairs_of_logfmt_leave_the_message(tmp_path):
    text = 't=2024-05-03T10:00:05Z lvl=info msg="all is well" user=7\n' * 2
    more = "t=2024-05-03T10:00:05Z lvl=warn msg=odd later=1\n"
    rows = rows_of(tmp_path, text + more, with_pairs=True)
    assert rows[0] == {"ts": TEN, "level": "info", "user": "7", "later": None, "message": "all is well"}
    assert rows[2] == {"ts": TEN, "level": "warn", "user": None, "later": "1", "message": "odd"}


def test_a_json_line_with_other_keys_or_types_keeps_its_text(tmp_path):
    lines = ['{"time":"2024-05-03T10:00:05Z","msg":"good","n":1}'] * 1000
    strange = [
        '{"time":"2024-05-03T10:00:05Z","msg":"a","n":1.5}',
        '{"msg":"b","m":1}',
        '{"msg":',
        '{"time":7,"msg":"c"}',
    ]
    rows = rows_of(tmp_path, "\n".join([*lines, *strange]))
    assert rows[0] == {"ts": TEN, "message": "good", "n": 1}
    assert [row["message"] for row in rows[1000:]] == strange
    assert rows[1000]["ts"] == TEN


def test_a_field_that_is_empty_at_first_is_part_of_the_message_later(tmp_path):
    text = "May  3 10:00:05 web1 kernel: up\n" * 1000 + "May  3 10:00:05 web1 sshd[7]: in\n"
    rows = rows_of(tmp_path, text)
    assert rows[0].keys() == {"ts", "host", "program", "message"}
    assert rows[-1]["message"] == "7 in"


def test_a_pattern_that_fits_no_line_is_refused_with_an_example(run, tmp_path):
    (tmp_path / "x.log").write_text("7|hello there\n")
    code, _, err = run("load", tmp_path / "x.log", "--to", tmp_path / "t", "--pattern", r"^(?P<message>\d+)$")
    assert (code, "fits none of the first 1 lines, such as '7|hello there'" in err) == (2, True)
    assert not (tmp_path / "t").exists()
