"""Files as streams of rows, with the columns that the first of them shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import OptionError, StorageError
from indextables.ingest.json_depth import CheckedJson
from indextables.ingest.log_forms import log_form
from indextables.ingest.log_lines import MESSAGE, LineReader, LogForm, line_shown, split_lines
from indextables.ingest.log_times import Years
from indextables.lazy import pc, pj, pq, pv
from indextables.model.names import no_column

FORMATS = ("csv", "jsonl", "parquet", "log")
_BY_NAME = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
BLOCK_BYTES = 4 << 20
_SAMPLE_LINES = 1000
_WORDS = 3
"""A column with at least this many words per text on average is indexed as text."""


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files of one format, and the columns they have."""

    paths: tuple[str, ...]
    form: str
    schema: pa.Schema
    text_columns: tuple[str, ...]
    log: LogForm | None = None
    names: tuple[str, ...] = ()
    """The columns of a CSV file that has no line of headings."""

    def batches(
        self, at_end: Callable[[str, LineReader], None] = lambda _path, _reader: None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of all files, one after the other; `at_end` is given what was counted of each log."""
        for path in self.paths:
            try:
                if self.log is not None:
                    reader = line_reader(path, self.log)
                    for block in blocks(path):
                        yield reader.read(split_lines(block), is_last=False)
                    yield reader.read(pa.array([], pa.string()))
                    at_end(path, reader)
                else:
                    yield from _rows(path, self.form, self.schema, self.names)
            except (pa.ArrowInvalid, pa.ArrowKeyError) as wrong:
                raise OptionError(
                    f"{path} does not fit the columns that were guessed from {self.paths[0]}: {wrong}. "
                    "Give the right type with --type COLUMN=TYPE, such as --type code=string."
                ) from wrong


def open_input(
    paths: Sequence[str],
    form: str | None,
    pattern: str | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    *,
    names: Sequence[str] = (),
    with_pairs: bool = False,
    with_raw: bool = False,
) -> InputFiles:
    """Look at the first file and guess what is not given; a CSV without headings needs its `names`.

    Of a log, `with_pairs` makes columns of its `key=value` pairs, and `with_raw` one of the whole line.
    """
    for path in paths:
        if not Path(path).is_file():
            raise StorageError(f"there is no file {path}")
    file_format = form or ("log" if pattern else guess_format(paths[0]))
    if names and file_format != "csv":
        raise OptionError(f"only CSV files take column names; {paths[0]} is read as {file_format}")
    if (with_pairs or with_raw) and file_format != "log":
        raise OptionError(f"only logs take --pairs and --raw; {paths[0]} is read as {file_format}")
    log = None
    if file_format == "log":
        lines = first_lines(paths[0])
        log = log_form(lines, pattern, with_pairs=with_pairs, with_raw=with_raw)
        schema, text_columns = log.schema, _log_texts(log, lines)
    else:
        sample = _sample(paths[0], file_format, names)
        schema, text_columns = sample.schema, _text_columns(sample)
    declared = types or {}
    missing = [name for name in declared if name not in schema.names]
    if missing:
        raise OptionError(no_column(schema.names, missing[0], str(paths[0])))
    fields = [pa.field(item.name, declared.get(item.name, _plain(item.type))) for item in schema]
    return InputFiles(tuple(paths), file_format, pa.schema(fields), text_columns, log, tuple(names))


def guess_format(path: str) -> str:
    """The format by the end of a file's name; what has no known one is a log."""
    name = Path(path.removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2"))
    return _BY_NAME.get(name.suffix.lower(), "log")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that a table gives to a guessed one."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz or "UTC")
    return kind


def _text_columns(sample: pa.RecordBatch) -> tuple[str, ...]:
    columns = zip(sample.schema.names, sample.columns, strict=True)
    return tuple(name for name, values in columns if _is_text(values))


def _log_texts(log: LogForm, lines: pa.Array) -> tuple[str, ...]:
    """The columns of a log that are searched by words, always with the message, be it short."""
    texts = log.take_apart(lines)[1]
    return tuple(
        item.name
        for item in log.schema
        if item.name == MESSAGE
        or (pa.types.is_string(item.type) and item.name in texts and _is_text(texts[item.name]))
    )


def _is_text(values: pa.Array) -> bool:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return False
    words = pc.mean(pc.count_substring_regex(values, r"\S+")).as_py()
    return words is not None and words >= _WORDS


def _sample(path: str, form: str, names: Sequence[str]) -> pa.RecordBatch:
    try:
        first = next(_rows(path, form, None, names), None)
    except pa.ArrowInvalid as wrong:
        raise OptionError(f"{path} cannot be read as {form}: {wrong}. --format says what it is.") from wrong
    if first is None:
        raise OptionError(f"{path} has no rows, so its columns cannot be guessed")
    return first.slice(0, _SAMPLE_LINES)


def line_reader(path: str, log: LogForm) -> LineReader:
    """A reader of a file's lines; it reads the file once more if the times say no year."""
    modified = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)
    return LineReader(
        log, lambda: Years.of((log.times(split_lines(block)) for block in blocks(path)), modified)
    )


def log_summary(path: str, reader: LineReader) -> str:
    """What became of the lines of a file."""
    said = f"{path}: {counted(reader.lines, 'line')}, {counted(reader.rows, 'row')}"
    if reader.joined:
        said += f"; {counted(reader.joined, 'line')} of stack traces joined to the line before"
    if reader.form.has_times:
        said += f". {reader.rows - reader.without_time:,} of {counted(reader.rows, 'row')} have a time"
    if reader.without_time:
        said += f"; {reader.without_time:,} do not: the first is line {reader.example_line:,}: " + line_shown(
            reader.example
        )
    return said


def _rows(path: str, form: str, schema: pa.Schema | None, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if form == "parquet":
        yield from pq.ParquetFile(path).iter_batches()
    elif form == "jsonl":
        options = pj.ParseOptions(explicit_schema=schema) if schema is not None else None
        yield from pj.open_json(CheckedJson(path), pj.ReadOptions(block_size=BLOCK_BYTES), options)
    else:
        tabs = Path(path.removesuffix(".gz")).suffix.lower() == ".tsv"
        yield from pv.open_csv(
            pa.input_stream(path),
            pv.ReadOptions(block_size=BLOCK_BYTES, column_names=list(names) or None),
            pv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True),
            pv.ConvertOptions(column_types=schema, strings_can_be_null=True),
        )


def blocks(path: str) -> Iterator[str]:
    """The text of a file in pieces that end with a line."""
    with pa.input_stream(path) as stream:
        unfinished = b""
        while data := stream.read(BLOCK_BYTES):
            whole, end, rest = (unfinished + data).rpartition(b"\n")
            unfinished = rest
            if end:
                yield (whole + end).decode("utf-8", "replace")
        if unfinished:
            yield unfinished.decode("utf-8", "replace")


def first_lines(path: str) -> pa.Array:
    """What the form of a log is guessed from."""
    for block in blocks(path):
        return split_lines(block).slice(0, _SAMPLE_LINES)
    raise OptionError(f"{path} is empty")
