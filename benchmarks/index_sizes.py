"""Bytes of search indexes: by the fields of a column, for scripts without spaces, beside rivals.

    python -m benchmarks.run index_sizes

The index alone is counted, not the rows: of ours the sections that a split carries, of a rival what its
files grow by when the index is made. Corpora: generated log lines, package descriptions in three languages, and
lines of sixteen systems as `load` takes them apart.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from benchmarks.harness import commit
from benchmarks.log_lines import log_lines
from benchmarks.search_rivals import stored
from indextables.errors import MissingPackageError
from indextables.index.build.builder import IndexBuilder
from indextables.index.settings import from_options
from indextables.ingest.files import open_input
from indextables.options import Options

LINES = 100_000
COLUMN = "text"
OURS: Mapping[str, Mapping[str, str]] = {
    "text, as in 0.2": {"typemap": "text", "tokenizer": "default@1"},
    "text": {"typemap": "text"},
    "string": {"typemap": "string"},
    "substring": {"typemap": "substring"},
    "text,string": {"typemap": "text,string"},
    "text,substring": {"typemap": "text,substring"},
    "text by jieba": {"typemap": "text", "tokenizer": "jieba"},
    "text by icu": {"typemap": "text", "tokenizer": "icu"},
}


def shared(*parts: str) -> Path:
    """A file of the shared material."""
    return Path(os.environ.get("INDEXTABLES_SHARED", "../shared"), *parts)


def corpora() -> Iterator[tuple[str, pa.Table]]:
    """The texts of every corpus that is there."""
    texts = pa.chunked_array([batch["message"] for batch in log_lines(LINES)])
    yield f"{LINES:,} log lines", pa.table({COLUMN: texts})
    descriptions = shared("languages", "descriptions.jsonl.gz")
    if descriptions.is_file():
        with gzip.open(descriptions, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        for name, language in (("Japanese", "ja"), ("Chinese", "zh_CN"), ("Korean", "ko")):
            chosen = [row["text"] for row in rows if row["lang"] == language]
            yield f"{len(chosen):,} descriptions, {name}", pa.table({COLUMN: pa.array(chosen, pa.string())})


def ours(rows: pa.Table, options: Mapping[str, str]) -> int:
    """Bytes of an index with these settings."""
    spec = from_options(Options.of(dict(options)), rows.schema)
    builder = IndexBuilder(spec, rows.schema)
    builder.add(rows)
    return builder.finish().length


def lance(rows: pa.Table, place: Path) -> int:
    """Bytes of LanceDB's full-text index, with positions and without stemming."""
    import lancedb

    table = lancedb.connect(str(place)).create_table("t", rows)
    before = stored(place)
    table.create_fts_index(
        COLUMN, with_position=True, stem=False, remove_stop_words=False, ascii_folding=False,
        max_token_length=None,
    )  # fmt: skip
    return stored(place) - before


def infino(rows: pa.Table, place: Path) -> int:
    """Bytes that Infino's file grows by with an index."""
    import infino as rival

    rows = rows.cast(pa.schema([(COLUMN, pa.large_utf8())]))
    for name, spec in (("plain", rival.IndexSpec()), ("indexed", rival.IndexSpec().fts(COLUMN))):
        rival.connect(str(place / name)).create_table("t", rows.schema, spec).append(rows)
    return stored(place / "indexed") - stored(place / "plain")


RIVALS: Mapping[str, tuple[str, Callable[[pa.Table, Path], int]]] = {
    "LanceDB": ("lancedb", lance),
    "Infino": ("infino", infino),
}


def measured(rows: pa.Table) -> dict[str, int | str]:
    """Bytes of every index of one corpus."""
    found: dict[str, int | str] = {"the text itself": rows.column(COLUMN).nbytes}
    for name, settings in OURS.items():
        try:
            found[name] = ours(rows, {f"indexing.{key}.{COLUMN}": value for key, value in settings.items()})
        except MissingPackageError as missing:
            found[name] = f"left out: {missing.fields['packages'][0]} is missing"
    for rival, (package, build) in RIVALS.items():
        try:
            with tempfile.TemporaryDirectory() as place:
                found[f"{rival} {version(package)}"] = build(rows, Path(place))
        except Exception as failed:  # noqa: BLE001 - a rival that is missing or fails is reported, not hidden
            found[rival] = f"left out: {type(failed).__name__}: {str(failed)[:80]}"
    return found


def automatic() -> dict[str, int]:
    """Bytes of the index of loaded logs, by their message alone and with their columns of few values."""
    total = {"rows": 0, "text": 0, "message": 0, "message and few values": 0}
    with gzip.open(shared("logs", "loghub.tsv.gz"), "rt", encoding="utf-8") as lines:
        by_system: dict[str, list[str]] = {}
        for line in lines:
            system, *_, text = line.rstrip("\n").split("\t")
            by_system.setdefault(system, []).append(text)
    with tempfile.TemporaryDirectory() as place:
        for system, texts in by_system.items():
            path = Path(place, f"{system}.log")
            path.write_text("\n".join(texts) + "\n")
            source = open_input([str(path)], "log")
            rows = pa.Table.from_batches(list(source.batches()), source.schema)
            words = {name: kind for name, kind in source.kinds.items() if kind == "text"}
            total["rows"] += rows.num_rows
            total["text"] += path.stat().st_size
            for key, kinds in (("message", words), ("message and few values", source.kinds)):
                total[key] += ours(rows, {f"indexing.typemap.{name}": kind for name, kind in kinds.items()})
    return total


def page(results: Mapping[str, Mapping[str, int | str]], loaded: Mapping[str, int], commit: str) -> str:
    """The results as a page."""
    lines = [
        "# Sizes of indexes",
        "",
        f"Kilobytes of the index alone, IndexTables {it.__version__}: `python -m benchmarks.run index_sizes`.",
        f"Commit {commit}.",
        "",
        "| | " + " | ".join(results) + " |",
        "| --- |" + " ---: |" * len(results),
    ]
    for name in dict.fromkeys(name for found in results.values() for name in found):
        cells = [found.get(name, "") for found in results.values()]
        shown = [f"{cell / 1000:,.0f}" if isinstance(cell, int) else cell for cell in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    if loaded:
        shown_logs = (
            f"Logs of sixteen systems as `load` takes them apart ({loaded['rows']:,} rows, "
            f"{loaded['text'] / 1000:,.0f} KB): {loaded['message'] / 1000:,.0f} KB of index for texts, "
            f"{loaded['message and few values'] / 1000:,.0f} KB with columns of few values (`indexing.auto`)."
        )
        lines += ["", shown_logs]
    return "\n".join(lines) + "\n"


def main(results: Path, note: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure every corpus that is there, and keep it under `results`."""
    found = {}
    for name, rows in corpora():
        found[name] = measured(rows)
        note(f"{name}: {found[name]}")
    loaded = automatic() if shared("logs", "loghub.tsv.gz").is_file() else {}
    at = commit()
    whole = {"version": it.__version__, "commit": at, "corpora": found, "loaded": loaded}
    (results / "index_sizes.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    (results / "index_sizes.md").write_text(page(found, loaded, at))
    note(page(found, loaded, at))
    return whole
