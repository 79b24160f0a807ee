"""Keeping credentials out of the log: commitInfo is read by everyone who can read the table.

A parameter is hidden when its name says that it is a secret; text anywhere in
the values loses signatures, access keys and passwords inside addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET = frozenset(
    {
        "secret",
        "secrets",
        "token",
        "password",
        "passwd",
        "pwd",
        "credential",
        "credentials",
        "sas",
        "signature",
    }
)
_KEY_OWNERS = frozenset(
    {"access", "account", "api", "auth", "encryption", "private", "secret", "service", "storage"}
)
_IN_TEXT = (
    re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"),
    re.compile(
        r"(?i)(?<=[?&;])(?:sig|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)"
        r"|accountkey|sharedaccesskey)=[^&;\s\"']+"
    ),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
)  # fmt: skip


def redacted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without the value of anything that looks like a credential."""
    return {key: HIDDEN if is_secret(key) else without_secrets(value) for key, value in parameters.items()}


def is_secret(name: str) -> bool:
    """Whether a parameter of that name holds a credential."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _SECRET) or ("key" in words and bool(words & _KEY_OWNERS))


def without_secrets(value: Any) -> Any:
    """A value with the credentials inside its text replaced."""
    if isinstance(value, str):
        for pattern in _IN_TEXT:
            value = pattern.sub(HIDDEN, value)
        return value
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value
