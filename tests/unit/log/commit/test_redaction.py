"""Credentials never enter the log."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, StorageError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.redaction import redacted, refuse_secrets, without_secrets
from indextables.storage.envelope import unpack
from indextables.storage.secrets import is_secret
from indextables.storage.store import open_store
from support.builder import SCHEMA, LogBuilder, add, commit_path


@pytest.mark.parametrize(
    "name",
    [
        "fs.s3a.secret.key", "fs.s3a.access.key", "aws_secret_access_key", "awsSecretAccessKey", "aws_session_token",
        "azure_storage_account_key", "fs.azure.account.key.x.dfs.core.windows.net", "azure_storage_sas_key",
        "google_service_account_key", "password", "client_secret", "SAS", "spark.hadoop.fs.s3a.session.token",
    ],
)  # fmt: skip
def test_names_of_secrets(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "mode",
        "predicate",
        "indexing.tokenizer.message",
        "partitionBy",
        "primaryKey",
        "assess",
        "key",
        "tokenizer",
    ],
)
def test_names_that_are_no_secrets(name):
    assert not is_secret(name)


def test_secrets_inside_values_are_replaced():
    assert without_secrets("s3://user:hunter2@host/x") == "s3://***@host/x"
    assert "abc" not in without_secrets("https://a.blob/x?sv=1&sig=abc&se=2")
    assert without_secrets("AKIAIOSFODNN7EXAMPLE") == "***"
    assert redacted({"a": {"password": "x", "b": ["https://h/p?sig=s3cr3t"]}}) == {
        "a": {"password": "***", "b": ["https://h/p?***"]}
    }
    assert redacted({"rows": 5, "where": "a = 'b'"}) == {"rows": 5, "where": "a = 'b'"}


def test_a_commit_carries_no_secret_into_its_file():
    builder = LogBuilder().create()
    plan = CommitPlan(
        "WRITE", Rule.APPEND, lambda _: [add("a")],
        parameters={"fs.s3a.secret.key": "hunter2", "source": "s3://me:hunter2@bucket/x"},
        user_metadata="copied from https://a/x?sig=hunter2",
    )  # fmt: skip
    builder.log().commit(plan)
    assert b"hunter2" not in unpack(builder.store.get(commit_path(1)), name="x")


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2", "rows": 5}',
        "loaded with aws_secret_access_key=hunter2",
        "Authorization: Bearer hunter2hunter2",
        "sig=hunter2",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2;EndpointSuffix=x",
        "http://user:hunter2@endpoint:9000/bucket",
        "eyJhbGciOiJIUzI1NiJ9.hunter2.c2lnbmF0dXJl",
        {"nested": {"clientSecret": "hunter2"}},
        "copied from s3://AKIAIOSFODNN7EXAMPLE:wJalr/K7M/hunter2@bucket/x",
        "copied from https://me:a/hunter2/b@host/x",
        "settings: password=hunter2",
        "https://host/x?token=hunter2",
        '{"conf": "a=1,password=hunter2", "b": 2}',
    ],
)
def test_user_metadata_loses_what_looks_like_a_credential(text):
    assert "hunter2" not in str(without_secrets(text))


@pytest.mark.parametrize(
    "text",
    [
        "batch 17 of job nightly",
        '{"rows": 5, "tokenizer": "default"}',
        "secretary: Ann",
        "a = 'b' AND c > 3",
        '{"job":"http://host:8080/5","by":"ann@example.com"}',
        '{"indexing.typemap.password": "text"}',
    ],
)
def test_other_user_metadata_stays_as_it_is(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "address",
    [
        "https://acct.blob.core.windows.net/c/t?sv=1&sig=hunter2",
        "abfss://c@acct.dfs.core.windows.net/t?sv=1&sig=hunter2",
        "s3://bucket/t?X-Amz-Signature=hunter2",
        "s3://key:hunter2@bucket/t",
        "s3://key:a/hunter2/b@bucket/t",
    ],
)
def test_an_address_with_credentials_is_refused_without_repeating_them(address):
    with pytest.raises(StorageError, match="carries credentials") as caught:
        open_store(address)
    assert "hunter2" not in str(caught.value) + str(caught.value.fields)


def test_a_directory_named_like_a_credential_is_a_path_like_any_other():
    assert open_store("s3://bucket/t/token=abc/x").uri == "s3://bucket/t/token=abc/x"


@pytest.mark.parametrize(
    "properties", [{"fs.s3a.secret.key": "hunter2"}, {"source": "https://a.blob/x?sv=1&sig=hunter2"}]
)
def test_a_table_property_that_looks_like_a_credential_is_refused(properties):
    builder = LogBuilder().create()
    with pytest.raises(OptionError, match="looks like a credential") as caught:
        builder.log().update_properties(properties)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(OptionError, match="looks like a credential"):
        LogBuilder().log().initialize(SCHEMA, properties=properties)


@pytest.mark.parametrize("column", ["token", "password", "secret", "api_key", "signature", "auth.token"])
def test_a_column_with_the_name_of_a_credential_is_indexed_like_any_other(tmp_path, column):
    options = {
        f"indexing.typemap.{column}": "text",
        f"indexing.tokenizer.{column}": "whitespace",
        f"indexing.indexrecordoption.{column}": "basic",
        "indexing.fastfields": "other",
    }
    rows = pa.table({column: ["red fox", "dog"], "other": [1, 2]})
    table = it.Table.create(tmp_path / "t", rows.schema, options=options)
    table.append(rows)
    table.update_properties({"spark.indextables.dataSkippingStatsColumns": column})
    opened = it.Table.open(tmp_path / "t")
    assert opened.search("red", columns=["other"]).read_all()["other"].to_pylist() == [1]
    assert (
        opened.log.snapshot().metadata.configuration[f"spark.indextables.indexing.tokenizer.{column}"]
        == "whitespace"
    )
    assert not any("***" in str(row) for row in opened.history().to_pylist())


def test_a_credential_in_the_value_of_our_own_option_is_refused():
    with pytest.raises(OptionError, match="looks like a credential"):
        LogBuilder().create().log().update_properties({"indexing.typemap.a": "AKIAIOSFODNN7EXAMPLE"})


def test_a_name_of_a_credential_in_a_value_counts_in_properties_that_are_not_our_options():
    """In an option of ours such a name may be that of a column."""
    with pytest.raises(OptionError, match="looks like a credential"):
        refuse_secrets({"note": "loaded with password=hunter2"})
    refuse_secrets({"spark.indextables.dataSkippingStatsColumns": "password=hunter2"})


def test_an_error_of_the_store_shows_neither_signature_nor_password():
    options = {"storage.endpoint": "http://user:hunter2@127.0.0.1:1", "storage.max_retries": "0",
               "aws_access_key_id": "a", "aws_secret_access_key": "hunter2", "aws_region": "x"}  # fmt: skip
    with pytest.raises(StorageError) as caught:
        open_store("s3://bucket/t", options).get("x")
    seen: BaseException | None = caught.value
    while seen is not None:
        assert "hunter2" not in str(seen)
        seen = seen.__cause__
