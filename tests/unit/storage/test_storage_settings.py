"""Settings of object stores: Hadoop's names and the store's own mean the same, and typing errors show."""

from __future__ import annotations

import pytest

from indextables.errors import OptionError
from indextables.storage.store import open_store, requests_at_once, scans_at_once
from indextables.storage.stores.remote_settings import RemoteSettings, settings_for
from indextables.storage.urls import parse_url

S3 = parse_url("s3://bucket/x")
AZURE = parse_url("abfss://box@acct.dfs.core.windows.net/x")
GS = parse_url("gs://bucket/x")


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (
            {"aws_access_key_id": "k", "aws_secret_access_key": "s"},
            {"access_key_id": "k", "secret_access_key": "s"},
        ),
        ({"AWS_REGION": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"aws_session_token": "t"}, {"session_token": "t"}),
        ({"s3_endpoint_url": "https://e"}, {"endpoint": "https://e"}),
        ({"storage.endpoint": "https://e"}, {"endpoint": "https://e"}),
        ({"spark.indextables.aws_region": "r-x-1"}, {"region": "r-x-1"}),
        ({"spark.hadoop.fs.s3a.access.key": "k"}, {"access_key_id": "k"}),
        (
            {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s", "fs.s3a.session.token": "t"},
            {"access_key_id": "k", "secret_access_key": "s", "session_token": "t"},
        ),
        ({"fs.s3n.awsAccessKeyId": "k"}, {"access_key_id": "k"}),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        ({"fs.s3a.endpoint": "https://s3.eu-central-1.amazonaws.com"}, {"region": "eu-central-1"}),
        ({"fs.s3a.endpoint": "minio:9000"}, {"endpoint": "https://minio:9000"}),
        (
            {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.path.style.access": "true"},
            {"endpoint": "http://minio:9000"},
        ),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": "false"}),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"skip_signature": "true"},
        ),
        ({"fs.s3a.requester.pays.enabled": "true"}, {"request_payer": "true"}),
        (
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn"},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "arn"},
        ),
        ({"fs.s3a.access.key": "all", "fs.s3a.bucket.bucket.access.key": "mine"}, {"access_key_id": "mine"}),
        ({"fs.s3a.bucket.other.access.key": "theirs"}, {}),
        ({"fs.s3a.access.key": "hadoop", "aws_access_key_id": "explicit"}, {"access_key_id": "explicit"}),
        ({"fs.s3a.connection.maximum": "96", "fs.defaultFS": "hdfs://x", "azure_nonsense": "1"}, {}),
    ],
)
def test_s3_settings_in_either_spelling(options: dict[str, str], config: dict[str, str]) -> None:
    assert settings_for(S3, options).config == config


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({}, {}),
        ({"azure_storage_account_key": "k"}, {"account_key": "k"}),
        ({"azure_account_key": "k"}, {"account_key": "k"}),
        ({"azure_storage_sas_token": "s"}, {"sas_key": "s"}),
        ({"fs.azure.account.key.acct.dfs.core.windows.net": "k"}, {"account_key": "k"}),
        ({"fs.azure.account.key.acct.blob.core.windows.net": "k"}, {"account_key": "k"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "k"}, {}),
        ({"fs.azure.account.key": "k"}, {"account_key": "k"}),
        ({"fs.azure.sas.fixed.token.acct.dfs.core.windows.net": "s"}, {"sas_key": "s"}),
        ({"fs.azure.sas.box.acct.blob.core.windows.net": "s"}, {"sas_key": "s"}),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth2.client.id.acct.dfs.core.windows.net": "id",
                "fs.azure.account.oauth2.client.secret": "secret",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
                "fs.azure.account.key": "not this one",
            },
            {
                "client_id": "id",
                "client_secret": "secret",
                "tenant_id": "tenant",
                "authority_host": "https://login.microsoftonline.com",
            },
        ),
    ],
)
def test_azure_settings_in_either_spelling(options: dict[str, str], config: dict[str, str]) -> None:
    assert settings_for(AZURE, options).config == {"account_name": "acct", **config}


def test_azure_clouds_other_than_the_public_one_have_their_own_endpoints() -> None:
    china = parse_url("abfss://box@acct.dfs.core.chinacloudapi.cn/x")
    assert settings_for(china, {}).config["endpoint"] == "https://acct.blob.core.chinacloudapi.cn"
    fabric = parse_url("abfss://space@onelake.dfs.fabric.microsoft.com/x")
    assert settings_for(fabric, {}).config == {"account_name": "onelake", "use_fabric_endpoint": "true"}


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"google_service_account": "/key.json"}, {"service_account": "/key.json"}),
        ({"google_cloud_service_account_key": "{}"}, {"service_account_key": "{}"}),
        ({"fs.gs.auth.service.account.json.keyfile": "/key.json"}, {"service_account": "/key.json"}),
        ({"fs.gs.storage.root.url": "https://e"}, {"base_url": "https://e"}),
        ({"fs.gs.auth.type": "UNAUTHENTICATED"}, {"skip_signature": "true"}),
    ],
)
def test_google_settings_in_either_spelling(options: dict[str, str], config: dict[str, str]) -> None:
    assert settings_for(GS, options).config == config


@pytest.mark.parametrize(
    ("options", "client"),
    [
        ({"aws_allow_http": "true"}, {"allow_http": True}),
        ({"storage.allow_http": "false"}, {"allow_http": False}),
        ({"aws_endpoint": "http://127.0.0.1:1"}, {"allow_http": True}),
        ({"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}, {"allow_http": True}),
        (
            {"client_timeout": "10s", "storage.proxy_url": "http://p"},
            {"timeout": "10s", "proxy_url": "http://p"},
        ),
        ({"aws_endpoint": "https://e"}, {}),
    ],
)
def test_what_belongs_to_the_connection_goes_to_the_client(options: dict[str, str], client: dict) -> None:
    found = settings_for(S3, options)
    assert found.client == client
    assert "allow_http" not in found.config


def test_retries_can_be_bounded() -> None:
    assert settings_for(S3, {"storage.max_retries": "2"}).retry == {"max_retries": 2}
    with pytest.raises(OptionError, match="must be a number"):
        settings_for(S3, {"storage.max_retries": "often"})


def test_requests_at_once_can_be_bounded() -> None:
    assert settings_for(S3, {}).requests_at_once == 32
    for place in ("s3://bucket/x", "az://box/x", "gs://bucket/x"):
        store = open_store(place, {"storage.requests_at_once": "6"})
        assert (requests_at_once(store), scans_at_once(store)) == (6, 3)
    assert scans_at_once(open_store("s3://bucket/x", {"storage.requests_at_once": "1"})) == 1
    for wrong in ("0", "-1", "many", "1.5"):
        with pytest.raises(OptionError, match="whole number"):
            settings_for(S3, {"storage.requests_at_once": wrong})


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("aws_acess_key_id", "aws_access_key_id"),
        ("storage.endpont", "storage.endpoint"),
        ("aws_xyzzy", "Known are aws_ with"),
    ],
)
def test_a_misspelt_setting_is_an_error_with_the_nearest_name(key: str, advice: str) -> None:
    with pytest.raises(OptionError, match=key) as caught:
        settings_for(S3, {key: "secret value"})
    assert advice in str(caught.value)
    assert "secret value" not in str(caught.value)


def test_settings_do_not_print_credentials() -> None:
    assert "hush" not in repr(settings_for(S3, {"aws_secret_access_key": "hush"}))
    assert "hush" not in repr(RemoteSettings(config={"a": "hush"}, client={"b": "hush"}))


@pytest.mark.parametrize(
    ("environment", "client"),
    [
        ({"AWS_ALLOW_HTTP": "true"}, {"allow_http": True}),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, {"allow_http": True}),
        ({"AWS_PROXY_URL": "http://p", "AZURE_PROXY_URL": "http://q"}, {"proxy_url": "http://p"}),
        ({"AWS_ENDPOINT_URL": "https://e", "AWS_REGION": "r"}, {}),
    ],
)
def test_the_connection_follows_the_environment(environment: dict[str, str], client: dict) -> None:
    assert settings_for(S3, {}, environment).client == client
    assert settings_for(S3, {}, environment).config == {}
    assert settings_for(S3, {"storage.allow_http": "false"}, environment).client["allow_http"] is False
