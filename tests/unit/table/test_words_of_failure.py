"""What a user reads after a common mistake: what it is, and the next step."""

from __future__ import annotations

import http.server
import shutil
import threading

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import MissingSplitError, NotATableError, StorageError

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "table", SCHEMA)
    made.append(pa.table({"id": [1, 2, 3]}))
    return made


@pytest.fixture
def service():
    """A server that gives every request the answer it was told to give."""

    class Answering(http.server.BaseHTTPRequestHandler):
        def answer(self):
            status, headers, body = self.server.told
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_POST = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def refusal(kind, path, **options):
    with pytest.raises(kind) as refused:
        it.Table.open(path, options=options or None).scan().read_all()
    return str(refused.value)


def test_a_file_is_not_taken_for_an_empty_directory(table, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert "It is a file: give the directory that holds the table." in refusal(
        NotATableError, tmp_path / "notes.txt"
    )
    assert "It is a file" in refusal(NotATableError, table.files()["uri"][0].as_py())


def test_an_empty_directory_is_nothing_and_no_file(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "The directory is empty." in refusal(NotATableError, tmp_path / "empty")


def test_the_log_directory_itself_leads_to_the_table_above_it(tmp_path, table):
    said = refusal(NotATableError, tmp_path / "table" / "_transaction_log")
    assert "It is the log directory of a table: give the directory above it." in said


def test_a_log_copied_away_from_its_table_says_that_the_files_are_not_there(tmp_path, table):
    shutil.copytree(tmp_path / "table" / "_transaction_log", tmp_path / "copy" / "_transaction_log")
    assert "the log was copied here without its files" in refusal(MissingSplitError, tmp_path / "copy")


def test_missing_credentials_are_called_so_and_no_strange_address_is_blamed(service):
    service.told = (403, {}, b"denied")
    place = f"http://127.0.0.1:{service.server_port}"
    said = refusal(StorageError, "s3://bucket/t", aws_metadata_endpoint=place, aws_region="us-east-1")
    assert "no credentials were given, and this machine has no role" in said
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in said
    assert "latest/api/token" not in said


WRONG_REGION = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; the region
'us-east-1' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region></Error>"""


@pytest.mark.parametrize(
    ("told", "advice"),
    [
        ((301, {}, b""), "The bucket is in another region: set AWS_REGION"),
        ((400, {}, WRONG_REGION), "The bucket is in another region (eu-west-1): set AWS_REGION"),
    ],
)
def test_a_bucket_of_another_region_is_called_so(service, told, advice):
    service.told = told
    options = {
        "aws_endpoint": f"http://127.0.0.1:{service.server_port}",
        "aws_allow_http": "true",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
    }
    assert advice in refusal(StorageError, "s3://bucket/t", **options)
