"""A message that quotes what others wrote can be printed, however long that is."""

from __future__ import annotations

import pickle

import pytest

import indextables as it
from indextables.errors import Error, NotFoundError
from support.builder import LogBuilder, commit_path


def test_a_name_of_a_megabyte_is_cut_in_the_middle_and_the_advice_stays():
    error = Error("There is no " + "x" * 1_000_000 + ". Restore it.", path="y" * 1_000_000)
    assert len(str(error)) < 4_000
    assert str(error).startswith("There is no xxx")
    assert str(error).endswith("Restore it.")
    assert "characters left out" in str(error)
    assert len(error.path) == 1_000_000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_ordinary_message_is_left_as_it_is():
    text = "word " * 700
    assert str(NotFoundError(text)) == text


def test_a_hostile_path_in_a_log_does_not_fill_the_error(tmp_path):
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create()
    builder.store.put(commit_path(1), b'{"add":{"path":"%s","size":"x"}}\n' % (b"../" * 300_000))
    with pytest.raises(Error) as error:
        builder.log().snapshot().files()
    assert len(str(error.value)) < 4_000
    with pytest.raises(Error) as error:
        it.Table.open(tmp_path / ("n" * 100_000))
    assert len(str(error.value)) < 4_000
