"""The tokenizers of dictionaries as parameters of tests; those that are not installed are skipped with the reason."""

from __future__ import annotations

import pytest

from indextables.errors import MissingPackageError
from indextables.index.dictionaries import DICTIONARIES
from indextables.index.tokens import newest_version


def dictionary_tokenizers():
    """`jieba@42` and `icu@72`, or whatever editions are here."""
    found = []
    for name in DICTIONARIES:
        try:
            found.append(pytest.param(f"{name}@{newest_version(name)}", id=name))
        except MissingPackageError as missing:
            found.append(pytest.param(name, id=name, marks=pytest.mark.skip(reason=str(missing))))
    return found
