"""The URIs of files(): each one, read as a URI, leads to its file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.log.adds.file_table import file_uris
from indextables.storage.store import open_store, resolve

NAMES = ["plain.split", "p=x%2Fy%25/a.split", "p=ü b/c.split", "q#1?/d.split", "p=[a]{b}/e.split", "f.split"]


@pytest.mark.parametrize("chunked", [False, True])
def test_the_uri_of_a_local_file_leads_to_it(tmp_path, chunked):
    """I1: partition directories hold percent signs that are part of their names."""
    store = open_store(tmp_path / "a table %1")
    for name in NAMES:
        store.put(name, name.encode())
    paths = pa.array(NAMES)
    uris = file_uris(store, pa.chunked_array([paths[:2], paths[2:]]) if chunked else paths)
    for name, uri in zip(NAMES, uris.to_pylist(), strict=True):
        home, inside = resolve(open_store(tmp_path), uri)
        assert home.get(inside) == name.encode()


def test_a_path_that_is_a_uri_already_stays_as_it_is(tmp_path):
    elsewhere = "s3://bucket/a b%20c.split"
    assert file_uris(open_store(tmp_path), pa.array([elsewhere])).to_pylist() == [elsewhere]
