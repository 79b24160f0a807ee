"""Keeps credentials out of the log, since everyone who can read the table can read commitInfo.

A parameter is hidden when its name suggests a secret; credentials inside any text value
are replaced. `storage.secrets` defines what a credential looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indextables.errors import OptionError
from indextables.options import canonical, is_storage_key
from indextables.storage.secrets import HIDDEN, hide_credentials, hide_secrets, is_secret


def redacted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with the value of everything that looks like a credential replaced."""
    return {key: HIDDEN if is_secret(key) else without_secrets(value) for key, value in parameters.items()}


def without_secrets(value: Any) -> Any:
    """A value with the credentials inside its text replaced."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value


def refuse_secrets(properties: Mapping[str, str | None]) -> None:
    """Raise when a table property would carry a credential: properties are stored in the log."""
    for key, value in properties.items():
        if value is not None and (is_secret(key) or _hidden(key, value) != value):
            raise OptionError(
                f"the table property {key!r} looks like a credential, and everyone who can read the table "
                "could read it. Give it as an option of the session or the call, or leave it to the "
                "environment.",
                key=key,
            )


def _hidden(key: str, value: str) -> str:
    """A property's value without credentials; in those of our own options, names are names of columns."""
    ours = canonical(key) is not None and not is_storage_key(key)
    return hide_credentials(value) if ours else hide_secrets(value)
