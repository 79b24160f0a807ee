"""DuckDB leaves nothing in the directory of whoever calls."""

from __future__ import annotations

import tempfile

import pytest

from indextables.duck import database


@pytest.mark.parametrize("settings", [{}, {"enable_external_access": "false"}])
def test_what_does_not_fit_into_memory_goes_to_temporary_files_and_is_removed(
    tmp_path, monkeypatch, settings
):
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with database.connect(threads=1, memory_limit="40MB", **settings) as connection:
        groups = "SELECT i, string_agg(i::VARCHAR) FROM range(600000) t(i) GROUP BY 1"
        assert connection.sql(f"SELECT count(*) FROM ({groups})").fetchall() == [(600_000,)]
        connection.execute("CREATE TABLE held AS SELECT i, hash(i) AS h FROM range(6000000) t(i)")
        assert len(list(temporary.rglob("*.tmp"))) > 0
    assert list(here.iterdir()) == list(temporary.iterdir()) == []
