"""Credentials never enter the log (errata 15)."""

from __future__ import annotations

import pytest

from indextables.log.commit import CommitPlan, Rule
from indextables.log.redaction import is_secret, redacted, without_secrets
from indextables.storage.envelope import unpack
from support.builder import LogBuilder, add, commit_path


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
