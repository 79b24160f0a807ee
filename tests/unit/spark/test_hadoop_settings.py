"""Store settings under our names reach Spark's reader under Hadoop's."""

from __future__ import annotations

from indextables.spark.hadoop import hadoop_settings


def test_s3_credentials_and_endpoint() -> None:
    given = {
        "aws_access_key_id": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "spark.indextables.aws_endpoint": "http://e",
    }
    assert hadoop_settings("s3://bucket/t", given) == {
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
        "fs.s3a.endpoint": "http://e",
        "fs.s3a.path.style.access": "true",
    }


def test_a_session_token_names_the_provider_that_reads_it() -> None:
    found = hadoop_settings("s3://b/t", {"aws_session_token": "t"})
    assert found["fs.s3a.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")


def test_hadoop_spelling_wins() -> None:
    found = hadoop_settings("s3://b/t", {"aws_region": "a", "fs.s3a.endpoint.region": "b"})
    assert found == {"fs.s3a.endpoint.region": "b"}


def test_azure_keys_carry_the_account() -> None:
    given = {"azure_storage_account_name": "acc", "azure_storage_account_key": "k"}
    assert hadoop_settings("az://c/t", given) == {"fs.azure.account.key.acc.dfs.core.windows.net": "k"}
    uri = "abfss://c@acc.dfs.core.windows.net/t"
    oauth = hadoop_settings(uri, {"azure_client_id": "i", "azure_client_secret": "s", "azure_tenant_id": "t"})
    assert oauth["fs.azure.account.auth.type.acc.dfs.core.windows.net"] == "OAuth"


def test_google_and_local_stores() -> None:
    found = hadoop_settings("gs://b/t", {"google_service_account_path": "/key.json"})
    assert found["google.cloud.auth.service.account.json.keyfile"] == "/key.json"
    assert hadoop_settings("file:///t", {"aws_region": "x"}) == {}
