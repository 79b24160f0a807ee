"""The report: one HTML page that needs nothing from anywhere else."""

import html.parser

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.transaction_log import TransactionLog
from indextables.report import gather_facts, render_report, size_text

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
    log = TransactionLog.open(table.uri, {"merge.targetBytes": "1M"})
    return render_report(gather_facts(log))


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


def test_it_says_what_to_do_with_the_statement_for_it(page):
    assert "splits are small" in page
    assert "MERGE SPLITS" in page


def test_it_follows_light_and_dark(page):
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes_are_readable(size, text):
    assert size_text(size) == text
