"""Hadoop, which Spark's reader uses for object stores: its packages and its names for settings.

The log and the indexes are read through our store, the rows through Hadoop's. Our store
understands Hadoop's settings; this module translates in the other direction, so that
`option("aws_access_key_id", ...)` is set once for both. The result applies to one
relation and changes nothing in the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from indextables.errors import TableError
from indextables.options import PREFIX

_HADOOP_VERSION = "3.4.1"
PACKAGES = {
    "s3": "org.apache.hadoop:hadoop-aws",
    "azure": "org.apache.hadoop:hadoop-azure",
    "gcs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}

_S3 = {
    "access_key_id": "fs.s3a.access.key",
    "secret_access_key": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
    "endpoint": "fs.s3a.endpoint",
    "endpoint_url": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "default_region": "fs.s3a.endpoint.region",
}
_GS = {
    "service_account": "google.cloud.auth.service.account.json.keyfile",
    "service_account_path": "google.cloud.auth.service.account.json.keyfile",
    "application_credentials": "google.cloud.auth.service.account.json.keyfile",
}
_HADOOP_KEYS = ("fs.", "google.cloud.")
_AZURE_HOST = "dfs.core.windows.net"


def hadoop_settings(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's keys for the store of `uri`; keys given in Hadoop's own spelling take precedence."""
    plain = {key.lower().removeprefix(PREFIX): (key, value) for key, value in options.items()}
    scheme = urlsplit(uri).scheme
    settings: dict[str, str] = {}
    if scheme in ("s3", "s3a"):
        settings = _renamed(plain, ("aws_", "s3_", "storage."), _S3)
        if "fs.s3a.session.token" in settings:
            provider = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
            settings["fs.s3a.aws.credentials.provider"] = provider
        if "fs.s3a.endpoint" in settings:
            # An endpoint of one's own rarely has a host name per bucket.
            settings["fs.s3a.path.style.access"] = "true"
    elif scheme in ("az", "abfs", "abfss"):
        settings = _azure(uri, plain)
    elif scheme == "gs":
        settings = _renamed(plain, ("google_",), _GS)
        if settings:
            settings["google.cloud.auth.service.account.enable"] = "true"
    settings.update({key: value for key, value in options.items() if key.startswith(_HADOOP_KEYS)})
    return settings


def _renamed(
    plain: Mapping[str, tuple[str, str]], prefixes: tuple[str, ...], names: Mapping[str, str]
) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, (_, value) in plain.items():
        for prefix in prefixes:
            key = names.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
            if key is not None:
                settings[key] = value
    return settings


def _azure(uri: str, plain: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    def option(*names: str) -> str | None:
        tries = (f"{prefix}{name}" for name in names for prefix in ("azure_storage_", "azure_"))
        return next((plain[key][1] for key in tries if key in plain), None)

    host = urlsplit(uri).netloc.rpartition("@")[2] if "@" in uri else ""
    account = host.partition(".")[0] or option("account_name", "account")
    if account is None:
        return {}
    suffix = host or f"{account}.{_AZURE_HOST}"
    settings: dict[str, str] = {}
    key, sas = option("account_key", "access_key"), option("sas_key", "sas_token")
    client, secret, tenant = option("client_id"), option("client_secret"), option("tenant_id")
    if key is not None:
        settings[f"fs.azure.account.key.{suffix}"] = key
    elif sas is not None:
        settings[f"fs.azure.account.auth.type.{suffix}"] = "SAS"
        settings[f"fs.azure.sas.fixed.token.{suffix}"] = sas
    elif client is not None and secret is not None and tenant is not None:
        settings[f"fs.azure.account.auth.type.{suffix}"] = "OAuth"
        provider = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
        settings[f"fs.azure.account.oauth.provider.type.{suffix}"] = provider
        settings[f"fs.azure.account.oauth2.client.id.{suffix}"] = client
        settings[f"fs.azure.account.oauth2.client.secret.{suffix}"] = secret
        login = f"https://login.microsoftonline.com/{tenant}/oauth2/token"
        settings[f"fs.azure.account.oauth2.client.endpoint.{suffix}"] = login
    return settings


def package_of(cloud: str) -> str:
    """The Hadoop package that lets Spark read a store by itself, in the version this Spark was built with."""
    if cloud not in PACKAGES:
        raise TableError(f"cloud={cloud!r} is not one of {', '.join(map(repr, PACKAGES))}", cloud=cloud)
    package = PACKAGES[cloud]
    return package if cloud == "gcs" else f"{package}:{_hadoop_version()}"


def _hadoop_version() -> str:
    import pyspark

    for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.rpartition("-")[2]
    return _HADOOP_VERSION
