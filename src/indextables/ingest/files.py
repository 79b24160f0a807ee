"""Files as streams of rows, with the columns that the first of them shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import OptionError, StorageError
from indextables.index.automatic import SAMPLE_ROWS, automatic_kinds
from indextables.index.settings import JSON, TEXT, is_list_of_text
from indextables.ingest import streams
from indextables.ingest.json_files import Json, json_blocks
from indextables.ingest.log_forms import log_form
from indextables.ingest.log_lines import MESSAGE, RAW, LineReader, LogForm, line_shown, split_lines
from indextables.ingest.log_times import Years
from indextables.ingest.not_fitting import BadLines, TypesDiffer
from indextables.ingest.streams import ENDINGS, TextFile
from indextables.lazy import pq, pv
from indextables.model.names import no_column

FORMATS = ("csv", "jsonl", "parquet", "log")
ON_ERROR = ("fail", "keep", "skip")
_BY_NAME = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_SAMPLE_LINES = 1000
_DELIMITERS = (",", "\t", ";", "|")


@dataclass(slots=True)
class Reading:
    """One run over the files: what was counted, and what a person should know."""

    done_bytes: int = 0
    total_bytes: int = 0
    logs: dict[str, LineReader] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files of one format, and the columns they have."""

    paths: tuple[str, ...]
    form: str
    schema: pa.Schema
    kinds: Mapping[str, str]
    """The index that each column gets by itself."""
    log: LogForm | None = None
    names: tuple[str, ...] = ()
    """The columns of a CSV file that has no line of headings."""
    declared: tuple[str, ...] = ()
    """Columns whose type the caller gave."""
    encoding: str | None = None
    delimiter: str | None = None
    on_error: str = "fail"
    json: Json = field(default_factory=Json)
    sizes: tuple[int, ...] = ()
    """The bytes of each file when it was looked at; what is written to it meanwhile is not read."""

    def batches(self, reading: Reading | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of all files, one after the other."""
        reading = reading or Reading()
        reading.total_bytes = sum(self.sizes)
        before = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            try:
                if self.form == "parquet":
                    yield from pq.ParquetFile(path).iter_batches()
                else:
                    with TextFile(path, self.encoding, size) as text:
                        for batch in self._text_rows(text, reading):
                            reading.done_bytes = before + text.file.offset
                            yield self._cast(batch, path)
                        reading.notes += self._encoding_notes(text)
            except (pa.ArrowInvalid, pa.ArrowKeyError) as wrong:
                raise OptionError(
                    f"{path} does not fit the columns that were guessed from {self.paths[0]}: {wrong}. "
                    "Give the right type with --type COLUMN=TYPE, such as --type code=string, or say with "
                    "--on-error keep or skip what becomes of lines that cannot be read."
                ) from wrong
            before += size
            reading.done_bytes = before

    def _text_rows(self, text: TextFile, reading: Reading) -> Iterator[pa.RecordBatch]:
        if self.log is not None:
            lines = line_reader(text.path, self.log, self.encoding)
            for block in text.blocks():
                yield lines.read(split_lines(block), is_last=False)
            yield lines.read(pa.array([], pa.string()))
            reading.logs[text.path] = lines
            return
        bad = BadLines(text.path, self.on_error, self.schema)
        if self.form == "jsonl":
            yield from self.json.rows(text, self.schema, bad)
        else:
            yield from self._csv_rows(text, bad)
        reading.notes += bad.notes()

    def _csv_rows(self, text: TextFile, bad: BadLines) -> Iterator[pa.RecordBatch]:
        columns = pa.schema([item for item in self.schema if item.name != RAW])
        try:
            for batch in open_csv(text, self.names, self.delimiter, columns, bad):
                yield bad.with_rows(batch)
        except pa.ArrowInvalid as wrong:
            name = TypesDiffer.column_of(wrong, columns)
            if name is None or name in self.declared:
                raise
            raise TypesDiffer(text.path, name) from wrong

    def _cast(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        try:
            return batch.cast(self.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as wrong:
            raise OptionError(f"{path} does not fit the columns and types of the load: {wrong}") from wrong

    def _encoding_notes(self, text: TextFile) -> list[str]:
        if text.has_replaced:
            return [f"{text.path} has bytes that are no {text.encoding}, now \ufffd; give its --encoding"]
        if self.encoding is None and not text.encoding.startswith("utf-8"):
            return [f"{text.path} is read as {text.encoding}; give its --encoding if that is wrong"]
        return []

    def with_wider_types(self, different: TypesDiffer) -> tuple[InputFiles, str]:
        """The files with columns wide enough for a block that did not fit, and a note about it."""
        if self.form == "jsonl":
            inner = self.json.with_block(different.block)
            fields = {item.name: item for item in inner.schema}
        else:
            inner = self.json
            fields = {different.column: pa.field(different.column, pa.string())}
        schema = pa.schema(
            [
                item
                if item.name in self.declared or item.name not in fields
                else _plain(fields.pop(item.name))
                for item in self.schema
            ]
        )
        for item in fields.values():
            schema = schema.append(_plain(item))
        if schema == self.schema and inner.widened == self.json.widened:
            raise OptionError(f"{different.path} does not fit its columns: {different.__cause__}")
        changed = [item.name for item in schema if item not in self.schema]
        return replace(self, schema=schema, json=inner), (
            f"{different.path}: values of several types in {', '.join(changed)}; such a column is "
            + ", ".join(sorted({str(schema.field(name).type) for name in changed}))
            + " now, and loading began again"
        )


def open_input(
    paths: Sequence[str],
    form: str | None,
    pattern: str | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    *,
    names: Sequence[str] = (),
    with_pairs: bool = False,
    with_raw: bool = False,
    encoding: str | None = None,
    delimiter: str | None = None,
    on_error: str = "fail",
    log: LogForm | None = None,
) -> InputFiles:
    """Look at the first file and guess what is not given; a CSV without headings needs its `names`.

    Of a log, `with_pairs` makes columns of its `key=value` pairs, and `with_raw` one of the whole line.
    `log` is the form of the logs that the table has, which this one must have too.
    """
    for path in paths:
        if not Path(path).is_file():
            raise StorageError(f"there is no file {path}")
    file_format = form or ("log" if pattern else guess_format(paths[0]))
    for flags, fitting in (
        ((("--columns", names), ("--delimiter", delimiter)), "csv"),
        ((("--pairs", with_pairs), ("--raw", with_raw)), "log"),
    ):
        for flag, value in flags:
            if value and file_format != fitting:
                raise OptionError(f"only {fitting} files take {flag}; {paths[0]} is read as {file_format}")
    source = InputFiles(
        tuple(paths), file_format, pa.schema([]), {}, None, tuple(names), tuple(types or {}), encoding,
        delimiter, on_error, sizes=tuple(Path(path).stat().st_size for path in paths),
    )  # fmt: skip
    if file_format == "log":
        source = _with_log(source, pattern, with_pairs, with_raw, log)
    else:
        source = _with_sample(source)
    declared = types or {}
    missing = [name for name in declared if name not in source.schema.names]
    if missing:
        raise OptionError(no_column(source.schema.names, missing[0], str(paths[0])))
    fields = [pa.field(item.name, declared.get(item.name, _plain(item).type)) for item in source.schema]
    if on_error == "keep" and file_format in {"csv", "jsonl"}:
        fields.append(pa.field(RAW, pa.string()))
    return replace(source, schema=pa.schema(fields))


def _with_log(
    source: InputFiles, pattern: str | None, with_pairs: bool, with_raw: bool, saved: LogForm | None
) -> InputFiles:
    lines = first_lines(source.paths[0], source.encoding)
    log = log_form(lines, pattern, with_pairs=with_pairs, with_raw=with_raw)
    if saved is not None and pattern is None and not (with_pairs or with_raw):
        if log.name != saved.name and not saved.fits(lines):
            raise OptionError(
                f"{source.paths[0]} is a log of {log.name}, and the table has one of {saved.name}; its first "
                f"line is {line_shown(lines[0].as_py())}. Load it into another table, or give a --pattern "
                "that makes the columns of the table."
            )
        log = saved
    return replace(source, log=log, schema=log.schema, kinds=_log_kinds(log, lines))


def _with_sample(source: InputFiles) -> InputFiles:
    path = source.paths[0]
    try:
        if source.form == "parquet":
            first = next(pq.ParquetFile(path).iter_batches(), None)
        else:
            with TextFile(path, source.encoding) as text:
                if source.form == "jsonl":
                    block = next(json_blocks(text), b"")
                    inner = Json().with_block(block)
                    source = replace(source, json=inner)
                    bad = BadLines(path, "skip", inner.schema)
                    first = next(inner.rows_of(block, inner.schema, bad), None)
                else:
                    bad = BadLines(path, "skip" if source.on_error == "keep" else source.on_error, None)
                    first = next(open_csv(text, source.names, source.delimiter, None, bad), None)
    except pa.ArrowInvalid as wrong:
        raise OptionError(
            f"{path} cannot be read as {source.form}: {wrong}. --format says what it is, and --on-error keep "
            "or skip what becomes of lines that are broken."
        ) from wrong
    if first is None or not first.num_columns:
        raise OptionError(f"{path} has no rows, so its columns cannot be guessed")
    kinds = automatic_kinds(first.slice(0, SAMPLE_ROWS)) | _nested_kinds(first.schema)
    return replace(source, schema=first.schema, kinds=kinds)


def guess_format(path: str) -> str:
    """The format by the end of a file's name; what has no known one is a log."""
    name = Path(path)
    if name.suffix.lower() in ENDINGS:
        name = name.with_suffix("")
    return _BY_NAME.get(name.suffix.lower(), "log")


def _plain(item: pa.Field) -> pa.Field:
    """The column that a table gets for a guessed one."""
    kind = item.type
    if pa.types.is_null(kind):
        kind = pa.string()
    elif pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz or "UTC")
    return pa.field(item.name, kind)


def _nested_kinds(schema: pa.Schema) -> dict[str, str]:
    """The index of each nested column: lists of texts are searched by words, others by path too."""
    nested = [item for item in schema if pa.types.is_nested(item.type)]
    return {item.name: TEXT if is_list_of_text(item.type) else JSON for item in nested}


def _log_kinds(log: LogForm, lines: pa.Array) -> dict[str, str]:
    """The index of each column of a log; the message is searched by words, be it short.

    The texts of a log of JSON objects may be objects and lists again.
    """
    texts = log.take_apart(lines)[1]
    named = [item.name for item in log.schema if pa.types.is_string(item.type) and item.name in texts]
    kinds = automatic_kinds(pa.table({name: texts[name] for name in named}))
    documents = {name: JSON for name in named if log.fields and _are_documents(texts[name])}
    return kinds | documents | ({MESSAGE: TEXT} if MESSAGE in log.schema.names else {})


def _are_documents(values: pa.Array) -> bool:
    """Whether texts are JSON objects or lists; those that are null are not asked."""
    present = values.drop_null()
    try:
        return len(present) > 0 and all(
            isinstance(msgspec.json.decode(text), (dict, list)) for text in present.to_pylist()
        )
    except msgspec.DecodeError:
        return False


def line_reader(path: str, log: LogForm, encoding: str | None = None) -> LineReader:
    """A reader of a file's lines; it reads the file once more if the times say no year."""

    def find_years() -> Years:
        modified = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)
        with TextFile(path, encoding) as text:
            return Years.of((log.times(split_lines(block)) for block in text.blocks()), modified)

    return LineReader(log, find_years)


def log_summary(path: str, reader: LineReader) -> str:
    """What became of the lines of a file."""
    summary = f"{path}: {counted(reader.lines, 'line')}, {counted(reader.rows, 'row')}"
    if reader.joined:
        summary += f"; {counted(reader.joined, 'line')} of stack traces joined to the line before"
    if reader.form.has_times:
        summary += f". {reader.rows - reader.without_time:,} of {counted(reader.rows, 'row')} have a time"
    if reader.without_time:
        summary += (
            f"; {reader.without_time:,} do not: the first is line {reader.example_line:,}: "
            + line_shown(reader.example)
        )
    return summary


def open_csv(
    text: TextFile, names: Sequence[str], delimiter: str | None, types: pa.Schema | None, bad: BadLines
) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file; what separates its columns is what its first line has most of."""
    first = text.head.partition(b"\n")[0].decode()
    chosen = delimiter or max(_DELIMITERS, key=first.count)
    rows: Iterator[pa.RecordBatch] = pv.open_csv(
        text,
        pv.ReadOptions(
            block_size=streams.BLOCK_BYTES,
            column_names=list(names) or None,
            use_threads=bad.on_error == "fail",
        ),
        pv.ParseOptions(
            delimiter=chosen,
            newlines_in_values=True,
            invalid_row_handler=None if bad.on_error == "fail" else bad.take_csv_row,
        ),
        pv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )
    return rows


def first_lines(path: str, encoding: str | None = None) -> pa.Array:
    """What the form of a log is guessed from."""
    with TextFile(path, encoding) as text:
        for block in text.blocks():
            return split_lines(block).slice(0, _SAMPLE_LINES)
    raise OptionError(f"{path} is empty")
