"""Addresses: every spelling a user may give ends in one canonical form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import StorageError
from indextables.storage.store import open_store
from indextables.storage.urls import has_scheme, parse_url

HERE = "/home/me"


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: HERE)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("/data//x/../t", "/data/t"),
        ("t", f"{HERE}/t"),
        ("./t", f"{HERE}/t"),
        ("../t", "/home/t"),
        ("my tables/t", f"{HERE}/my tables/t"),
        ("/a b/100%/%20/ü#?", "/a b/100%/%20/ü#?"),
        ("12:30", f"{HERE}/12:30"),
        ("run:1/t", f"{HERE}/run:1/t"),
        ("C/D", f"{HERE}/C/D"),
        (" lead", f"{HERE}/ lead"),
        ("file:/data/t", "/data/t"),
        ("file:///data/t/", "/data/t"),
        ("file://localhost/data/t", "/data/t"),
        ("FILE:///data/t", "/data/t"),
        ("file:t", f"{HERE}/t"),
        ("file:///a%20b/%25/%C3%BC", "/a b/%/ü"),
        ("file:/a b/ü", "/a b/ü"),
        ("file:///a?b#c", "/a?b#c"),
        ("/", "/"),
        ("file:///", "/"),
    ],
)
def test_a_local_address_is_a_path(given: str, path: str) -> None:
    place = parse_url(given)
    assert (place.kind, place.path) == ("file", path)
    assert parse_url(place.uri) == place


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("/data/t", "file:///data/t"),
        ("/a b/%20/ü", "file:///a%20b/%2520/%C3%BC"),
        ("s3://bucket/x/y/", "s3://bucket/x/y"),
        ("s3a://bucket/x", "s3://bucket/x"),
        ("s3n://bucket", "s3://bucket"),
        ("S3://Bucket/X", "s3://Bucket/X"),
        ("s3://bucket//x//y", "s3://bucket/x/y"),
        ("s3://bucket/a b/%20/ü?#*", "s3://bucket/a b/%20/ü?#*"),
        ("gs://bucket/x", "gs://bucket/x"),
        ("gcs://bucket/x", "gs://bucket/x"),
        ("az://box/x", "az://box/x"),
        ("azure://box/x", "az://box/x"),
        ("abfss://box/x", "az://box/x"),
        ("abfss://box@acct.dfs.core.windows.net/x", "abfss://box@acct.dfs.core.windows.net/x"),
        ("abfs://box@acct.dfs.core.windows.net/x/", "abfss://box@acct.dfs.core.windows.net/x"),
        ("abfss://box@acct/x", "abfss://box@acct.dfs.core.windows.net/x"),
        ("wasbs://box@acct.blob.core.windows.net/x", "abfss://box@acct.dfs.core.windows.net/x"),
        ("memory://name", "memory://name"),
        ("memory://name/x/", "memory://name/x"),
        ("memory:name", "memory://name"),
        ("memory:/name/x", "memory://name/x"),
        ("memory:", "memory://"),
    ],
)
def test_every_spelling_has_one_canonical_form(given: str, canonical: str) -> None:
    assert parse_url(given).uri == canonical
    assert parse_url(canonical).uri == canonical


def test_a_path_object_is_taken_literally() -> None:
    assert parse_url(Path("/a/s3:/x%20")).path == "/a/s3:/x%20"
    assert parse_url(Path("s3:/x")).path == f"{HERE}/s3:/x"


@pytest.mark.parametrize(
    ("bad", "advice"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("hdfs://host/x", "cannot be kept under hdfs:"),
        ("dbfs:/x", "cannot be kept under dbfs:"),
        ("https://host/x", "s3://bucket/path"),
        ("file://server/share", "three slashes"),
        ("s3:/bucket/x", "s3://bucket/path"),
        ("s3://", "s3://bucket/path"),
        ("s3:///x", "s3://bucket/path"),
        ("s3://user@bucket/x", "s3://bucket/path"),
        ("gs:x", "gs://bucket/path"),
        ("abfss://box@/x", "container@account"),
        ("abfss://@acct/x", "container@account"),
        ("s3://bucket/a/../b", "in full"),
        ("memory://n/../x", "in full"),
        ("/a\0b", "is not a path"),
    ],
)
def test_an_address_that_cannot_be_is_refused_with_advice(bad: str, advice: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse_url(bad)
    assert advice in str(caught.value)
    assert not bad.strip() or repr(bad) in str(caught.value)


@pytest.mark.parametrize("text", ["s3:x", "file:x", "ftp:/x", "abfss://c@a/x", "memory:", "GS://b"])
def test_what_has_a_scheme_is_no_path(text: str) -> None:
    assert has_scheme(text)


@pytest.mark.parametrize("text", ["a:b/c", "12:/x", "part=s3:/x", "a b:/x", "/s3:/x", "x", ""])
def test_what_only_has_a_colon_is_a_path(text: str) -> None:
    assert not has_scheme(text)


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1))
def test_any_directory_name_survives_its_uri(name: str) -> None:
    if name in {".", ".."}:
        return
    place = parse_url(f"/root/{name}/t")
    assert place.path == f"/root/{name}/t"
    assert parse_url(place.uri) == place
    assert place.uri.isascii()


@pytest.mark.parametrize(
    ("uri", "options", "expected"),
    [
        ("/a b/%20", {}, "file:///a b/%20/p q/%3A"),
        ("s3://bucket/x", {}, "s3a://bucket/x/p q/%3A"),
        ("s3n://bucket", {}, "s3a://bucket/p q/%3A"),
        ("gs://bucket/x", {}, "gs://bucket/x/p q/%3A"),
        (
            "az://box/x",
            {"azure_storage_account_name": "acct"},
            "abfss://box@acct.dfs.core.windows.net/x/p q/%3A",
        ),
        ("wasbs://box@acct.blob.core.windows.net", {}, "abfss://box@acct.dfs.core.windows.net/p q/%3A"),
    ],
)
def test_a_hadoop_reader_gets_its_own_scheme_and_no_escapes(uri: str, options: dict, expected: str) -> None:
    assert open_store(uri, options).spark_uri("p q/%3A") == expected
    assert open_store(uri, options).spark_uri("") == expected.removesuffix("/p q/%3A")
