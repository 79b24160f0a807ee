"""The page of a report: the described facts of a table as one HTML document that needs nothing but itself.

No script, no font, no image is loaded from anywhere, so the page can be kept,
mailed and read offline; it follows the reader's light or dark setting. It is a
pure function of the facts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import unquote

from indextables.display.plain import size_text
from indextables.ops.maintain.describe import Description, metrics_text
from indextables.report.advice import Recommendation
from indextables.report.facts import Bar, ReportFacts


def render_report(facts: ReportFacts) -> str:
    """The page."""
    state = facts.state
    name = unquote(state.table_path.rstrip("/").rpartition("/")[2]) or state.table_path
    sections = [
        _section("What to do", _advice_list(facts.advice)) if facts.advice or not state.is_delta else "",
        _section("Columns", _columns(state)),
        _section("Partitions by size", _bars(facts.partitions)) if facts.partitions else "",
        _section("Files by size", _bars(facts.file_sizes)) if facts.file_sizes else "",
        _section(f"Newest {len(facts.history)} versions", _history(facts.history)),
        _section("Log and properties", _details(state)),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(name)} - IndexTables report</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(name)}</h1>
<p class="path">{escape(state.table_path)}</p>
<p>Version {state.version}, committed {_time(state.timestamp_ms)}. Report made {_time(facts.created_ms)}.
All times are UTC.</p>
</header>
<main>
{_cards(state)}
{"".join(sections)}
</main>
</body>
</html>
"""


def _cards(state: Description) -> str:
    indexed = state.size_bytes and not state.is_delta
    share = f"{100 * state.index_bytes / state.size_bytes:.0f} % of it index" if indexed else ""
    average = size_text(state.size_bytes / state.num_files) + " on average" if state.num_files else ""
    rows = "unknown" if state.num_rows is None else f"{state.num_rows:,}"
    cards = [
        ("Rows", rows, f"in {len(state.columns)} columns"),
        ("Size", size_text(state.size_bytes), share),
        ("Files" if state.is_delta else "Splits", f"{state.num_files:,}", average),
        ("Log", size_text(state.log_bytes), f"{state.log_files:,} files"),
    ]
    return f"<div class=cards>{''.join(_card(*card) for card in cards)}</div>"


def _card(title: str, value: str, note: str) -> str:
    return f"<div class=card><h2>{title}</h2><p class=value>{value}</p><p class=note>{note}</p></div>"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n"


def _advice_list(advice: Sequence[Recommendation]) -> str:
    if not advice:
        return "<p>Nothing: the table is in good order.</p>"
    items = (
        f"<li>{escape(item.text)}"
        f"{f'<p class=note>{escape(item.effect)}</p>' if item.effect else ''}"
        f"{f'<pre>{escape(item.statement)}</pre>' if item.statement else ''}</li>"
        for item in advice
    )
    return f"<ul>{''.join(items)}</ul>"


def _columns(state: Description) -> str:
    rows = []
    for column in state.columns:
        marks = [f"<b class=mark>indexed as {escape(column.index)}</b>"] if column.index else []
        marks += ["<b class=mark>partition</b>"] if column.partition else []
        marks += [] if column.nullable else ["<b class=mark>not null</b>"]
        rows.append((f"<code>{escape(column.name)}</code>", escape(column.type), " ".join(marks)))
    return _table(("Column", "Type", ""), rows)


def _history(history: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            str(entry["version"]),
            f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}" if entry["timestamp"] else "",
            escape(entry["operation"] or ""),
            escape(metrics_text(entry["operation_metrics"] or ())),
        )
        for entry in history
    ]
    return _table(("Version", "Time (UTC)", "Operation", "Change"), rows, "times")


def _details(state: Description) -> str:
    skipped = f"{state.skipped_files}, of which {state.files_in_cooldown} are left alone for now"
    facts = {
        "Table id": state.table_id,
        "Created": _time(state.created_ms) if state.created_ms else "unknown",
        "Protocol (reader/writer)": state.protocol,
        "Partitioned by": ", ".join(state.partition_columns) or "nothing",
        "Versions that can be read": state.versions_available,
        "Newest checkpoint": "none" if state.checkpoint_version is None else str(state.checkpoint_version),
        **({} if state.is_delta else {"Splits that a merge could not read": skipped}),
        **{key: value or "" for key, value in sorted(state.properties.items())},
    }
    return _table(("Fact", "Value"), [(escape(key), escape(value)) for key, value in facts.items()])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table class='{kind}'><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class=wide>{table}</div>"


def _bars(bars: Sequence[Bar]) -> str:
    longest = max((bar.value for bar in bars), default=0) or 1
    rows = (
        f"<div class=bar><span class=label>{escape(bar.label)}</span>"
        f"<span class=track><i style='width:{100 * bar.value / longest:.1f}%'></i></span>"
        f"<span class=amount>{escape(bar.text)}</span></div>"
        for bar in bars
    )
    return "".join(rows)


def _time(moment_ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(moment_ms / 1000, dt.UTC):%Y-%m-%d %H:%M:%S}"


_STYLE = """
:root { color-scheme: light dark; --back: #f7f7f5; --paper: #fff; --ink: #1d2329; --faint: #67707a;
  --line: #e2e3df; --bar: #2f6f8f; --mark: #e6eff3; --mark-ink: #20536c; }
@media (prefers-color-scheme: dark) { :root { --back: #14181c; --paper: #1c2227; --ink: #e4e7ea;
  --faint: #96a0aa; --line: #2e363d; --bar: #5ba3c6; --mark: #223642; --mark-ink: #9cd0ea; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -.01em; }
h2 { margin: 0 0 .75rem; font-size: 1rem; }
p { margin: .25rem 0; } .path, .note, .label { color: var(--faint); } .path { overflow-wrap: anywhere; }
section, .card { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem; }
section { margin: 1rem 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem;
  margin: 1.5rem 0 1rem; }
.card h2 { margin: 0; font-weight: 500; color: var(--faint); font-size: .85rem; }
.value { font-size: 1.6rem; font-weight: 600; margin: .1rem 0; font-variant-numeric: tabular-nums; }
.note { font-size: .85rem; min-height: 1.3em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--faint); font-weight: 500; white-space: nowrap; }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
td:first-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
.times td:nth-child(-n+3) { white-space: nowrap; }
.mark { background: var(--mark); color: var(--mark-ink); font-weight: 500; font-size: .8rem;
  padding: .1rem .45rem; border-radius: 6px; white-space: nowrap; }
.bar { display: grid; grid-template-columns: minmax(7rem, 14rem) 1fr 6rem; gap: .75rem;
  align-items: center; font-size: .9rem; padding: .15rem 0; }
.label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.track { background: var(--mark); border-radius: 4px; height: .8rem; overflow: hidden; }
.track i { display: block; height: 100%; background: var(--bar); border-radius: 4px; }
.amount { text-align: right; font-variant-numeric: tabular-nums; }
ul { margin: 0; padding-left: 1.1rem; } li { margin: .3rem 0; }
pre { background: var(--back); border: 1px solid var(--line); border-radius: 6px; padding: .5rem .75rem;
  margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  header { padding-top: 1.25rem; }
  .cards { grid-template-columns: 1fr 1fr; gap: .6rem; margin: 1rem 0 .6rem; }
  .card, section { padding: .75rem .9rem; }
  section { margin: .6rem 0; }
  .value { font-size: 1.25rem; }
  /* A row of a table becomes a few lines, as wide as they need to be. */
  table, tbody { display: block; }
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .75rem; padding: .35rem 0;
    border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td { padding: 0; border: 0; }
  td:first-child { white-space: normal; font-weight: 600; }
  td:empty { display: none; }
  .times td:last-child { flex-basis: 100%; }
  .bar { grid-template-columns: 1fr auto; gap: 0 .75rem; padding: .3rem 0; }
  .label { white-space: normal; overflow-wrap: anywhere; }
  .track { grid-area: 2 / 1 / auto / -1; height: .5rem; }
}
"""
