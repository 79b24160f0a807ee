"""What a credential looks like, by its name and inside text, and text without it.

Messages and the log are read by more people than may open the store. A value is
hidden when its name says that it is a secret; in text, signatures of addresses,
user names with passwords, access keys and tokens are hidden wherever they stand.
Our own options hold no credentials, whatever the columns they name are called.
"""

from __future__ import annotations

import re

from indextables.options import canonical

HIDDEN = "***"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET = frozenset(
    """secret secrets token password passwd pwd credential credentials sas sig signature authorization
    accountkey sharedaccesskey sharedaccesssignature""".split()  # noqa: SIM905 - a list of words
)
_KEY_OWNERS = frozenset(
    {"access", "account", "api", "auth", "encryption", "private", "secret", "service", "storage"}
)
_IN_ADDRESS = (
    re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"),
    # Secret keys of AWS contain slashes. After http: a number and a slash are a port and a path.
    re.compile(r"(?<=://)(?<!ttp://)(?<!tps://)[^/@\s:]+:[^@\s\"',;<>]+(?=@)"),
    re.compile(r"(?<=://)[^/@\s:]+:(?!\d{1,5}/)[^@\s\"',;<>]+(?=@)"),
    re.compile(
        r"(?i)(?<=[?&;])(?:sig|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)"
        r"|accountkey|sharedaccesskey)=[^&;\s\"']+"
    ),
)
_IN_TEXT = (
    *_IN_ADDRESS,
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"(?i)(?<=\bbearer )[\w.~+/=-]{8,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+"),
    re.compile(r"[A-Za-z0-9+/]{86}=="),
)
_NAME = re.compile(r"""([A-Za-z][\w.-]{0,99})["']?\s*[:=]\s*""")
_VALUE = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&"'{}\[\]()]+""")


def is_secret(name: str) -> bool:
    """Whether a setting of that name holds a credential.

    >>> is_secret("client_secret"), is_secret("indexing.typemap.client_secret")
    (True, False)
    """
    if canonical(name) is not None:
        return False
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _SECRET) or ("key" in words and bool(words & _KEY_OWNERS))


def hide_secrets(text: str) -> str:
    """The text with the credentials in it replaced.

    >>> hide_secrets("https://acct.blob.core.windows.net/c/x?sv=1&sig=abc")
    'https://acct.blob.core.windows.net/c/x?sv=1&***'
    """
    text = hide_credentials(text)
    parts, end = [], 0
    for name in _NAME.finditer(text):
        value = _VALUE.match(text, name.end()) if name.start() >= end and is_secret(name[1]) else None
        if value is not None:
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts += [text[end : value.start()], quote, HIDDEN, quote]
            end = value.end()
    return "".join([*parts, text[end:]])


def hide_credentials(text: str) -> str:
    """The text without what is a credential by its own form, whatever name stands before it."""
    for pattern in _IN_TEXT:
        text = pattern.sub(HIDDEN, text)
    return text


def hide_signature(address: str) -> str:
    """An address without its signature or password; a directory `token=x` in its path is none."""
    for pattern in _IN_ADDRESS:
        address = pattern.sub(HIDDEN, address)
    return address
