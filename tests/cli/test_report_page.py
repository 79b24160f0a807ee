"""The report: one HTML page that needs nothing from anywhere else."""

import html.parser

import pyarrow as pa
import pytest

import indextables as it
from indextables.display.plain import size_text
from indextables.report import facts_of, render_report

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Checker(html.parser.HTMLParser):
    """Collects what a page loads, and whether its tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [value for key, value in attributes if key in ("src", "href", "srcset", "data")]
        if tag in ("script", "link", "iframe", "img"):
            self.loads.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def page(tmp_path):
    table = it.Table.create(
        tmp_path / "a <b> & 'c'", SCHEMA, ["day"], options={"indexing.typemap.message": "text"}
    )
    for n in range(6):
        table.append(pa.table({"id": [n], "day": [f"<day {n}>"], "message": ["x"]}, SCHEMA))
    return render_report(facts_of(table))


def test_the_page_is_whole_and_loads_nothing(page):
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loads == []
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_shows_the_facts(page):
    checker = Checker()
    checker.feed(page)
    text = " ".join(checker.text)
    assert "a <b> & 'c'" in text
    assert "Version 6" in text
    assert "indexed as text" in text
    assert "day=<day 3>" in text
    assert "CREATE TABLE" in text


def test_names_cannot_break_out_of_the_page(page):
    assert "<day" not in page
    assert "&lt;day 1&gt;" in page


def appended(table, *days):
    for day in days:
        table.append(pa.table({"id": [1], "day": [day], "message": ["x"]}, SCHEMA))
    return table


def advice_for(table):
    return [(item.statement or "", f"{item.text} {item.effect}") for item in facts_of(table).advice]


def test_merging_is_advised_exactly_where_it_would_do_something(tmp_path):
    alone = appended(it.Table.create(tmp_path / "alone", SCHEMA, ["day"]), "mon", "tue", "wed")
    assert not [statement for statement, _ in advice_for(alone) if "MERGE" in statement]
    several = appended(
        it.Table.create(tmp_path / "several", SCHEMA, ["day"]), "mon", "mon", "tue", "tue", "wed"
    )
    ((statement, text),) = [item for item in advice_for(several) if "MERGE" in item[0]]
    assert "4 of 5 splits are small" in text
    assert "opens 3 files instead of 5" in text
    it.sql(statement)
    assert several.refresh().files().num_rows == 3
    assert not [one for one, _ in advice_for(several) if "MERGE" in one]


def test_purging_is_advised_for_what_it_would_delete(tmp_path):
    import os

    table = appended(it.Table.create(tmp_path / "t", SCHEMA), "mon")
    left = tmp_path / "t" / "part-left-behind.split"
    left.write_bytes(b"x" * (3 << 20))
    young = [text for _, text in advice_for(table) if "younger than 168 hours" in text]
    assert len(young) == 1
    assert "1 file of 3.0 MiB" in young[0]
    os.utime(left, (0, 0))
    ((statement, text),) = [item for item in advice_for(table) if "PURGE" in item[0]]
    assert "1 file of 3.0 MiB belong to no version" in text
    it.sql(statement)
    assert not left.exists()
    assert not [one for one, _ in advice_for(table) if "PURGE" in one]


def test_files_kept_for_older_versions_are_named_with_what_lets_them_go(tmp_path):
    table = appended(it.Table.create(tmp_path / "t", SCHEMA), "mon", "tue")
    table.merge_splits()
    ((_, text),) = [item for item in advice_for(table) if "TRUNCATE" in item[0]]
    assert "2 files of" in text
    assert "older versions 0-2" in text


def test_a_delta_table_of_small_files_is_told_about(tmp_path):
    from deltalake import write_deltalake

    for n in range(4):
        write_deltalake(str(tmp_path / "d"), pa.table({"id": [n]}), mode="append")
    found = advice_for(it.DeltaTable.open(tmp_path / "d"))
    assert [statement.startswith("OPTIMIZE delta.") for statement, _ in found] == [True]
    assert "4 files become 1" in found[0][1]


def test_it_follows_light_and_dark(page):
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes_are_readable(size, text):
    assert size_text(size) == text
