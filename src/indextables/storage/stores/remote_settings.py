"""What users set for an object store, in any of the spellings they know, as one configuration.

Understood are the store's own names (`aws_region`, `azure_storage_account_key`,
`google_service_account`, and `storage.endpoint` for whichever store it is), and Hadoop's
(`fs.s3a.access.key`, `fs.azure.account.key.<account>...`, `fs.gs.auth...`), so that what already
works for Spark works here. The store's own names win over Hadoop's; what is set nowhere comes from
the environment (`AWS_REGION` ...), from instance roles and from the vendor's defaults.

A Hadoop key that means nothing to an object store is ignored, since sessions are full of
them; a misspelt key of the store's own kind is an error.
"""

# ruff: noqa: SIM905
# because lists of forty names read better as text
from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from indextables.errors import OptionError
from indextables.storage.objects import REQUESTS_AT_ONCE
from indextables.storage.urls import Location

_S3 = frozenset(
    """access_key_id secret_access_key session_token region default_region endpoint skip_signature
    virtual_hosted_style_request unsigned_payload checksum_algorithm conditional_put disable_bulk_delete
    disable_tagging imdsv1_fallback metadata_endpoint request_payer role_arn role_session_name s3_express
    container_credentials_relative_uri container_credentials_full_uri container_authorization_token_file
    server_side_encryption sse_kms_key_id sse_bucket_key_enabled sse_customer_key_base64 endpoint_url_sts
    web_identity_token_file""".split()
)
_AZURE = frozenset(
    """account_name account_key client_id client_secret tenant_id authority_host sas_key token
    credential_type use_emulator use_fabric_endpoint encryption_key endpoint msi_endpoint object_id
    msi_resource_id federated_token_file use_azure_cli skip_signature disable_tagging
    fabric_token_service_url fabric_workload_host fabric_session_token fabric_cluster_identifier""".split()
)
_GS = frozenset(
    "service_account service_account_key base_url bearer_token application_credentials skip_signature".split()
)
_CLIENT = frozenset(
    """allow_http allow_invalid_certificates connect_timeout timeout read_timeout pool_idle_timeout
    pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes root_certificate user_agent
    randomize_addresses""".split()
)
_RETRY = frozenset({"max_retries", "retry_timeout_s"})
_WIDTH = "requests_at_once"
_NAMES = {"s3": _S3, "azure": _AZURE, "gs": _GS}
_PREFIXES = {
    "s3": ("aws_", "s3_"),
    "azure": ("azure_storage_", "azure_"),
    "gs": ("google_cloud_", "google_"),
}
_ALIASES = {
    "s3": {
        "endpoint_url": "endpoint",
        "endpoint_url_s3": "endpoint",
        "token": "session_token",
        "sts_endpoint": "endpoint_url_sts",
    },
    "azure": {
        "account": "account_name",
        "access_key": "account_key",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "bearer_token": "token",
        "authority_id": "tenant_id",
    },
    "gs": {"service_account_path": "service_account", "endpoint": "base_url", "token": "bearer_token"},
}
_AWS_HOST = re.compile(r"s3(?:[.-]([a-z]+(?:-[a-z]+)+-[0-9]))?[.]amazonaws[.]com")
_ENDPOINTS = ("endpoint", "endpoint_url", "endpoint_url_s3", "base_url")
_CLIENT_FLAGS = frozenset({"allow_http", "allow_invalid_certificates", "randomize_addresses"})


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """The configuration of one store. Credentials are in it, so it does not print them."""

    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: Mapping[str, str | bool] = field(default_factory=dict, repr=False)
    retry: Mapping[str, float] = field(default_factory=dict)
    requests_at_once: int = REQUESTS_AT_ONCE


def settings_for(
    place: Location, options: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> RemoteSettings:
    """Gather what applies to the store at `place` from everything that is set."""
    plain = {_bare(key): str(value) for key, value in options.items()}
    settings = {
        **_connection_of(place.kind, environment),
        **_HADOOP[place.kind](plain, place),
        **_own(place.kind, plain),
    }
    if place.account and "account_name" not in settings:
        settings["account_name"] = place.account
    if place.host:
        _azure_cloud(place.host, settings)
    endpoint = settings.get("endpoint") or settings.get("base_url") or ""
    if endpoint.startswith("http://"):
        # Whoever writes an http address has decided about encryption already.
        settings.setdefault("allow_http", "true")
    return RemoteSettings(
        config={key: value for key, value in settings.items() if key in _NAMES[place.kind]},
        client={
            key: is_true(value) if key in _CLIENT_FLAGS else value
            for key, value in settings.items()
            if key in _CLIENT
        },
        retry={key: _number(key, value) for key, value in settings.items() if key in _RETRY},
        requests_at_once=_count(_WIDTH, settings.get(_WIDTH, str(REQUESTS_AT_ONCE))),
    )


def is_true(value: str) -> bool:
    """Whether a setting's text says yes."""
    return value.strip().lower() in {"true", "1", "yes", "on"}


def _bare(key: str) -> str:
    return key.lower().removeprefix("spark.indextables.").removeprefix("spark.hadoop.")


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise OptionError(f"storage.{key} is {value!r}; it must be a number.", key=key) from error


def _count(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise OptionError(f"storage.{key} is {value!r}; it must be a whole number, 1 or more.", key=key)
    return int(value)


def _connection_of(kind: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment says about the connection.

    obstore reads the rest of it by itself, but forgets this part once it is given any of it.
    """
    lowered = {key.lower(): value for key, value in environment.items()}
    prefixes = _PREFIXES[kind]
    settings = {
        name: lowered[prefix + name] for prefix in prefixes for name in _CLIENT if prefix + name in lowered
    }
    endpoints = (lowered.get(prefix + name, "") for prefix in prefixes for name in _ENDPOINTS)
    if any(endpoint.startswith("http://") for endpoint in endpoints):
        settings.setdefault("allow_http", "true")
    return settings


def _own(kind: str, plain: Mapping[str, str]) -> dict[str, str]:
    """The settings under the store's own names; `storage.` and `client_` serve every store."""
    settings: dict[str, str] = {}
    for key, value in plain.items():
        for prefix in (*_PREFIXES[kind], "client_", "storage."):
            if key.startswith(prefix):
                name = key.removeprefix(prefix)
                name = _ALIASES[kind].get(name, name)
                if name in {"path_style_access", "force_path_style"}:
                    name, value = "virtual_hosted_style_request", str(not is_true(value)).lower()  # noqa: PLW2901
                if name not in _known(kind):
                    _refuse(key, name, kind, prefix)
                settings[name] = value
                break
    return settings


def _known(kind: str) -> frozenset[str]:
    return _NAMES[kind] | _CLIENT | _RETRY | {_WIDTH}


def _refuse(key: str, name: str, kind: str, prefix: str) -> None:
    names = sorted(_known(kind))
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {prefix}{near[0]}?" if near else f"Known are {prefix} with {', '.join(names)}."
    raise OptionError(f"{key!r} is not a setting of this kind of store. {hint}", key=key)


def _hadoop_s3(plain: Mapping[str, str], place: Location) -> dict[str, str]:
    hadoop: dict[str, str] = {}
    for prefix in ("fs.s3n.", "fs.s3.", "fs.s3a.", f"fs.s3a.bucket.{place.bucket.lower()}."):
        hadoop |= {key.removeprefix(prefix): value for key, value in plain.items() if key.startswith(prefix)}
    names = {
        "awsaccesskeyid": "access_key_id",
        "awssecretaccesskey": "secret_access_key",
        "access.key": "access_key_id",
        "secret.key": "secret_access_key",
        "session.token": "session_token",
        "endpoint.region": "region",
        "server-side-encryption.key": "sse_kms_key_id",
        "encryption.key": "sse_kms_key_id",
    }
    settings = {names[key]: value for key, value in hadoop.items() if key in names and value}
    if "anonymous" in hadoop.get("aws.credentials.provider", "").lower():
        settings["skip_signature"] = "true"
    if hadoop.get("path.style.access"):
        settings["virtual_hosted_style_request"] = str(not is_true(hadoop["path.style.access"])).lower()
    if is_true(hadoop.get("requester.pays.enabled", "")):
        settings["request_payer"] = "true"
    encrypted = hadoop.get("encryption.algorithm") or hadoop.get("server-side-encryption-algorithm")
    if encrypted:
        settings["server_side_encryption"] = {"SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}.get(
            encrypted.upper(), encrypted
        )
    endpoint = hadoop.get("endpoint", "")
    if endpoint and "://" not in endpoint:
        secure = is_true(hadoop.get("connection.ssl.enabled", "true"))
        endpoint = f"{'https' if secure else 'http'}://{endpoint}"
    vendor = _AWS_HOST.fullmatch(urlsplit(endpoint).hostname or "")
    if vendor:
        # AWS's own address says no more than the region, which it is derived from again.
        if vendor[1]:
            settings.setdefault("region", vendor[1])
    elif endpoint:
        settings["endpoint"] = endpoint
        # Hadoop puts the bucket before the endpoint's host by itself; obstore wants it there already.
        settings.pop("virtual_hosted_style_request", None)
    return settings


def _hadoop_azure(plain: Mapping[str, str], place: Location) -> dict[str, str]:
    """The settings of a store for Azure that Hadoop's configuration of the same account stands for."""
    account = place.account or _own("azure", plain).get("account_name", "")

    def setting(name: str) -> str:
        """The value for this account, or the one for all accounts."""
        special = (value for key, value in plain.items() if account and key.startswith(f"{name}.{account}."))
        return next(special, "") or plain.get(name, "")

    auth_type = setting("fs.azure.account.auth.type").lower()
    settings: dict[str, str] = {}
    if auth_type in {"", "sharedkey"}:
        settings["account_key"] = setting("fs.azure.account.key")
    if auth_type in {"", "sas"}:
        settings["sas_key"] = setting("fs.azure.sas.fixed.token") or setting(f"fs.azure.sas.{place.bucket}")
    if auth_type in {"", "oauth"}:
        oauth = "fs.azure.account.oauth2."
        settings["client_id"] = setting(f"{oauth}client.id")
        settings["client_secret"] = setting(f"{oauth}client.secret")
        settings["tenant_id"] = setting(f"{oauth}msi.tenant")
        token_url = urlsplit(setting(f"{oauth}client.endpoint"))
        if token_url.hostname:
            settings["authority_host"] = f"{token_url.scheme}://{token_url.netloc}"
            settings["tenant_id"] = token_url.path.strip("/").split("/")[0]
    return {key: value for key, value in settings.items() if value}


def _hadoop_gs(plain: Mapping[str, str], place: Location) -> dict[str, str]:
    del place
    settings = {
        "service_account": plain.get("fs.gs.auth.service.account.json.keyfile")
        or plain.get("google.cloud.auth.service.account.json.keyfile", ""),
        "base_url": plain.get("fs.gs.storage.root.url", ""),
    }
    if plain.get("fs.gs.auth.type", "").upper() == "UNAUTHENTICATED":
        settings["skip_signature"] = "true"
    return {key: value for key, value in settings.items() if value}


def _azure_cloud(host: str, settings: dict[str, str]) -> None:
    """Point at the blob endpoint of clouds other than the public one."""
    if host.endswith("fabric.microsoft.com"):
        settings.setdefault("use_fabric_endpoint", "true")
    elif not host.endswith(".core.windows.net") and "use_emulator" not in settings:
        settings.setdefault("endpoint", f"https://{re.sub(r'[.]dfs[.]', '.blob.', host, count=1)}")


_HADOOP: dict[str, Callable[[Mapping[str, str], Location], dict[str, str]]] = {
    "s3": _hadoop_s3,
    "azure": _hadoop_azure,
    "gs": _hadoop_gs,
}
