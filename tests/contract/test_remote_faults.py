"""Object stores when the network misbehaves: lost requests, lost answers, missing buckets, forks."""

from __future__ import annotations

import http.server
import os
import pickle
import re
import ssl
import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from indextables.errors import NotFoundError, StorageError, TableError
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.storage.store import Store, StoreSpec, open_store, resolve
from indextables.storage.stores import remote
from indextables.storage.stores.put_if_absent import create_or_read
from support.servers import ObjectServer, lossy_proxy, s3_options, s3_server  # noqa: F401


class Faults:
    """The faults to come, in order, for requests of one method; and what was asked."""

    def __init__(self, method: str, *faults: str | None) -> None:
        self.method = method
        self.faults = list(faults)
        self.asked: list[str] = []

    def __call__(self, method: str, path: str) -> str | None:
        self.asked.append(method)
        return self.faults.pop(0) if method == self.method and self.faults else None


@pytest.fixture
def root(s3_server: ObjectServer) -> str:  # noqa: F811
    return f"{s3_server.root}/{uuid.uuid4().hex}"


def direct(root: str, server: ObjectServer) -> Store:
    return open_store(root, server.options)


@pytest.mark.parametrize("fault", ["reply", "request", "503"])
@pytest.mark.parametrize("there", [None, b"theirs"])
def test_a_creation_without_an_answer_says_so_and_is_sent_once(
    root: str,
    s3_server: ObjectServer,  # noqa: F811
    fault: str,
    there: bytes | None,
) -> None:
    """E5: whatever lies there afterwards may have come later, so the store does not guess from it."""
    if there is not None:
        direct(root, s3_server).put("log/1.json", there)
    faults = Faults("PUT", fault)
    with lossy_proxy(s3_server.endpoint, faults) as endpoint:
        with pytest.raises(StorageError, match="Could not create") as caught:
            open_store(root, s3_options(endpoint)).put_if_absent("log/1.json", b"ours")
        assert "final" not in caught.value.fields
    assert faults.asked == ["PUT"]


def test_a_name_that_is_never_used_again_is_read_back_after_a_lost_answer(
    root: str,
    s3_server: ObjectServer,  # noqa: F811
) -> None:
    """Checkpoints and floors: what is there under their name is as good as ours, or it is not."""
    for fault in ("reply", "request", "503"):
        direct(root, s3_server).put("theirs", b"theirs")
        with lossy_proxy(s3_server.endpoint, Faults("PUT", fault, fault)) as endpoint:
            store = open_store(root, s3_options(endpoint))
            assert create_or_read(store, "theirs", b"ours") is False
            if fault == "reply":
                assert create_or_read(store, "ours", b"ours") is True
            else:
                with pytest.raises(StorageError, match="Could not create"):
                    create_or_read(store, "absent", b"ours")


@pytest.mark.parametrize("fault", ["request", "503"])
def test_a_creation_that_never_arrived_raises_and_is_not_repeated_unasked(
    root: str,
    s3_server: ObjectServer,  # noqa: F811
    fault: str,
) -> None:
    """E5: absent now is not absent for ever, so the caller decides; trying again works."""
    faults = Faults("PUT", fault)
    with lossy_proxy(s3_server.endpoint, faults) as endpoint:
        store = open_store(root, s3_options(endpoint))
        with pytest.raises(StorageError, match="Could not create") as caught:
            store.put_if_absent("log/1.json", b"ours")
        assert not isinstance(caught.value, NotFoundError)
        assert f"{root}/log/1.json" in str(caught.value)
        assert faults.asked.count("PUT") == 1
        assert store.put_if_absent("log/1.json", b"ours") is True


def test_reads_and_replacing_writes_are_repeated_quietly(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    """They can be repeated without harm."""
    direct(root, s3_server).put("a", b"1")
    for method, work in (
        ("GET", lambda store: store.get("a")),
        ("GET", lambda store: store.list_level()),
        ("HEAD", lambda store: store.head("a")),
        ("PUT", lambda store: store.put("a", b"1")),
    ):
        for fault in ("503", "request"):
            faults = Faults(method, fault)
            with lossy_proxy(s3_server.endpoint, faults) as endpoint:
                work(open_store(root, s3_options(endpoint)))
            assert faults.asked.count(method) == 2
    assert direct(root, s3_server).get("a") == b"1"


def test_a_bucket_that_does_not_exist_is_an_error_never_an_empty_table(s3_server: ObjectServer) -> None:  # noqa: F811
    """A7."""
    store = open_store("s3://no-such-bucket/t", s3_server.options)
    for ask in (
        lambda: list(store.list()),
        lambda: store.list_level("log"),
        lambda: store.list_level("log", start_after="log/0"),
        lambda: store.get("log/1"),
        lambda: store.put("log/1", b""),
        lambda: store.put_if_absent("log/1", b""),
    ):
        with pytest.raises(StorageError, match="bucket does not exist there") as caught:
            ask()
        assert not isinstance(caught.value, NotFoundError)
        assert "s3://no-such-bucket/t" in str(caught.value)


def test_an_endpoint_that_is_not_there_is_named_with_advice() -> None:
    """A7."""
    store = open_store("s3://bucket/t", {**s3_options("http://127.0.0.1:9"), "storage.max_retries": "0"})
    for ask in (lambda: store.get("x"), lambda: list(store.list()), lambda: store.put_if_absent("x", b"")):
        with pytest.raises(StorageError, match="check the endpoint") as caught:
            ask()
        assert not isinstance(caught.value, NotFoundError)
        assert "s3://bucket/t" in str(caught.value)
        assert "Debug source" not in str(caught.value)


def test_errors_do_not_show_credentials() -> None:
    secret = "c2VjcmV0"
    store = open_store(
        "az://box/t",
        {
            "azure_storage_account_name": "acct",
            "azure_storage_sas_token": f"sv=2021-01-01&sp=r&sig={secret}",
            "azure_storage_endpoint": "http://127.0.0.1:9/acct",
            "storage.max_retries": "0",
        },
    )
    for ask in (lambda: store.get("x"), lambda: list(store.list())):
        with pytest.raises(StorageError) as caught:
            ask()
        error: BaseException | None = caught.value
        while error is not None:
            assert secret not in str(error)
            error = error.__cause__


def test_a_missing_account_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StorageError, match="az://box/t"):
        open_store("az://box/t", {}).get("x")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_hadoop_settings_reach_the_same_bucket(root: str, s3_server: ObjectServer, scheme: str) -> None:  # noqa: F811
    store = open_store(
        root.replace("s3:", f"{scheme}:"),
        {
            "fs.s3a.endpoint": s3_server.endpoint.removeprefix("http://"),
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": "testing",
            "fs.s3a.secret.key": "testing",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.threads.max": "10",
        },
    )
    store.put("a", b"1")
    assert direct(root, s3_server).get("a") == b"1"
    assert store.uri == root


def test_the_environment_is_used_where_nothing_is_set(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    direct(root, s3_server).put("a", b"from the environment")
    code = "import sys; from indextables.storage.store import open_store; print(open_store(sys.argv[1]).get('a'))"
    run = subprocess.run(
        [sys.executable, "-c", code, root],
        env={
            **os.environ,
            "AWS_ENDPOINT_URL": s3_server.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "from the environment" in run.stdout


_FORKED = """
import os, pickle, sys
from indextables.storage.store import open_store
spec = pickle.loads(bytes.fromhex(sys.argv[1]))
store = open_store(spec)
if sys.argv[2] == "used":
    store.put("a", b"1")
reader, writer = os.pipe()
if os.fork() == 0:
    try:
        open_store(spec).put("b", b"2")
        os.write(writer, b"worked")
    except Exception as error:
        os.write(writer, f"{type(error).__name__}: {error}".encode())
    os._exit(0)
print(os.read(reader, 10000).decode())
"""


def _forked(spec: StoreSpec, state: str) -> str:
    command = [sys.executable, "-c", _FORKED, pickle.dumps(spec).hex(), state]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_forked_child_is_told_instead_of_hanging(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    answer = _forked(direct(root, s3_server).spec(), "used")
    assert answer.startswith("StorageError")
    assert "spawn" in answer


def test_a_child_forked_before_the_first_use_works(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    """Spark forks its Python workers from a daemon that has opened a store but not used it."""
    assert _forked(direct(root, s3_server).spec(), "opened").strip() == "worked"


def test_stores_of_one_bucket_share_their_connections(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    """A log that names many files by absolute URI opens many stores, but connects once."""
    one = direct(root, s3_server)
    one.put("x/f", b"1")
    before = remote._connect.cache_info().currsize
    for n in range(50):
        open_store(f"{root}/{n}", s3_server.options).list_level()
    assert remote._connect.cache_info().currsize == before
    other, path = resolve(open_store(f"{root}/t", s3_server.options), f"{root}/x/f", anywhere=True)
    assert other.get(path) == b"1"


def test_a_server_that_ignores_conditions_is_refused_before_anything_is_written(
    root: str,
    s3_server: ObjectServer,  # noqa: F811
) -> None:
    with lossy_proxy(s3_server.endpoint, lambda _method, _path: None, careless=True) as endpoint:
        log = TransactionLog.open(root, s3_options(endpoint))
        with pytest.raises(TableError, match=r"cannot be written safely.*Nothing was written"):
            log.initialize(pa.schema([("id", pa.int64())]))
    assert list(direct(root, s3_server).list()) == []


def test_a_server_is_asked_once_whether_it_honours_conditions(root: str, s3_server: ObjectServer) -> None:  # noqa: F811
    faults = Faults("NONE")
    with lossy_proxy(s3_server.endpoint, faults) as endpoint:
        log = TransactionLog.open(root, s3_options(endpoint))
        log.initialize(pa.schema([("id", pa.int64())]))
        asked = faults.asked.count("PUT")
        for name in ("a", "b"):
            log.add_files([AddAction(path=name, size=1)])
    assert asked == 3, "a key twice, and version 0"
    assert faults.asked.count("PUT") == asked + 2
    names = [meta.path for meta in direct(root, s3_server).list()]
    assert names == [f"_transaction_log/{version:020d}.json" for version in range(3)]


def own_certificate(directory: Path) -> Path:
    """A key and a certificate for it that nobody signed, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    file = directory / "own.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file


def test_a_role_of_a_token_file_is_taken_anew_before_it_ends(tmp_path: Path) -> None:
    """Long jobs: credentials of a web identity end after minutes, and the file of the token is replaced meanwhile."""
    tokens, keys = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            fields = dict(parse_qsl(urlsplit(self.path).query)) | dict(parse_qsl(body))
            tokens.append(fields["WebIdentityToken"])
            ends = datetime.now(UTC) + timedelta(seconds=60)
            answer = (
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                f"<SessionToken>s</SessionToken><SecretAccessKey>x</SecretAccessKey><Expiration>{ends:%Y-%m-%dT%H:%M:%SZ}"
                f"</Expiration><AccessKeyId>key{len(tokens)}</AccessKeyId></Credentials>"
                "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_HEAD(self) -> None:
            keys.append(re.search(r"Credential=(\w+)/", self.headers["Authorization"])[1])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Tokens travel over TLS only.
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(own_certificate(tmp_path))
    server.socket = secure.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        address, token = f"https://127.0.0.1:{server.server_address[1]}", tmp_path / "token"
        token.write_text("first")
        store = open_store(
            "s3://bucket/t",
            {
                "aws_region": "us-east-1", "aws_endpoint": address, "aws_sts_endpoint": address,
                "aws_role_arn": "arn:aws:iam::123456789012:role/reader", "aws_role_session_name": "job",
                "aws_web_identity_token_file": str(token), "storage.allow_invalid_certificates": "true",
            },
        )  # fmt: skip
        for text in ("first", "second"):
            token.write_text(text)
            with pytest.raises(NotFoundError):
                store.head("x")
            time.sleep(0.2)  # what was just fetched is not fetched again at once
    finally:
        server.shutdown()
        server.server_close()
    assert tokens == ["first", "second"]
    assert keys == ["key1", "key2"]
