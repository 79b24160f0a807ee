"""Words of dictionaries: text in scripts without spaces cut by jieba or ICU, where these are installed.

`jieba` knows Chinese words. `icu` knows words of Chinese, Japanese, Thai, Lao, Khmer and Burmese. Another
edition of a dictionary may cut a text elsewhere, so its number is the version of the tokenizer (`jieba@42` is
jieba 0.42, `icu@72` ICU 72) and a text is never cut by another edition than the index was.
"""

from __future__ import annotations

import importlib
import logging
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from indextables.errors import MissingPackageError, OptionError
from indextables.records import dataclass

Cut = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A library that knows words: its module and package, and how its edition is seen and text is cut."""

    module: str
    package: str
    edition: Callable[[Any], int]
    cut: Callable[[Any], Cut]


def edition_of(name: str) -> int:
    """The edition of a dictionary that is installed, as the version of its tokenizer."""
    return DICTIONARIES[name].edition(_library(name))


@lru_cache(maxsize=4)
def cutter(name: str, edition: int) -> Cut:
    """A function that cuts a text into words, by this edition of a dictionary and no other."""
    installed = edition_of(name)
    if installed != edition:
        raise OptionError(
            f"a column is indexed by the tokenizer {name}@{edition}, and {name}@{installed} is installed, "
            "which may cut a text elsewhere. Install that edition, or move the column: set its "
            f"indexing.tokenizer to {name} with update_properties, then merge",
            tokenizer=name,
        )
    return DICTIONARIES[name].cut(_library(name))


@lru_cache(maxsize=4)
def _library(name: str) -> Any:
    dictionary = DICTIONARIES[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(dictionary.module)
    except ImportError as missing:
        raise MissingPackageError(
            f"the tokenizer {name} needs the package {dictionary.package}, which this Python does not have; "
            f"install it with: pip install 'indextables[{name}]'",
            packages=[dictionary.package],
        ) from missing


def _jieba_edition(library: Any) -> int:
    return int(str(library.__version__).split(".")[1])


def _jieba_cut(library: Any) -> Cut:
    library.setLogLevel(logging.WARNING)
    # An own instance: words that the program adds to jieba's would not be in other indexes.
    own = library.Tokenizer()
    return lambda text: [str(word) for word in own.cut(text, HMM=False)]


def _icu_edition(library: Any) -> int:
    return int(str(library.ICU_VERSION).partition(".")[0])


def _icu_cut(library: Any) -> Cut:
    threads = threading.local()

    def cut(text: str) -> list[str]:
        if not hasattr(threads, "iterator"):
            threads.iterator = library.BreakIterator.createWordInstance(library.Locale.getRoot())
        threads.iterator.setText(text)
        # It counts in units of UTF-16.
        units = text.encode("utf-16-le")
        words, begin = [], 0
        for end in threads.iterator:
            words.append(units[2 * begin : 2 * end].decode("utf-16-le"))
            begin = end
        return words

    return cut


DICTIONARIES = {
    "jieba": Dictionary("jieba", "jieba", _jieba_edition, _jieba_cut),
    "icu": Dictionary("icu", "PyICU", _icu_edition, _icu_cut),
}
