"""Verbs that bring rows in: load files, follow a file."""

from __future__ import annotations

import codecs
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indextables.cli import render
from indextables.cli.flags import Flags, dry_run_flag, verb
from indextables.connection import open_log
from indextables.display.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from indextables.ingest.files import InputFiles, Reading
    from indextables.ingest.log_lines import LogForm
    from indextables.log.snapshot import Snapshot
    from indextables.table import Table

_FORMATS = ("csv", "jsonl", "parquet", "log")


def _require_target(context: click.Context, _: click.Parameter, target: str | None) -> str:
    if target is None and not context.resilient_parsing:
        file = (context.params.get("files") or (context.params.get("file", "FILE"),))[0]
        arguments = shlex.join([file, "--to", Path(file).name.split(".")[0] or "table"])
        raise click.UsageError(
            f"which table? Name it with --to, for example: {context.command_path} {arguments}", context
        )
    return target or ""


to_flag = click.option(
    "--to",
    "target",
    metavar="TABLE",
    callback=_require_target,
    help="The table; it is created if it does not exist.  [required]",
)
pattern_flag = click.option(
    "--pattern",
    metavar="REGEX",
    help="Split log lines into columns by a regular expression with (?P<name>...) groups.",
)
pairs_flag = click.option(
    "--pairs", "with_pairs", is_flag=True, help="Make a column of each KEY=VALUE pair in the lines of a log."
)
raw_flag = click.option(
    "--raw", "with_raw", is_flag=True, help="Keep each line of a log as it is, in the column _raw."
)
text_flag = click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="COLUMN",
    help="Make this column searchable by words; may be repeated.",
)


def _types(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    types = {}
    for value in values:
        from indextables.model.types import type_from_sql

        name, equals, kind = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not COLUMN=TYPE")
        types[name] = type_from_sql(kind)
        if types[name] is None:
            raise click.BadParameter(f"{kind!r} is not a SQL type such as string, bigint or timestamp")
    return types


def _names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",")) if value else ()
    if not all(names) or len(set(names)) < len(names):
        raise click.BadParameter(f"{value!r} has an empty name, or one name twice")
    return names


def _encoding(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    try:
        return value and codecs.lookup(value).name
    except LookupError as unknown:
        raise click.BadParameter(f"{value!r} is not an encoding such as utf-16 or latin-1") from unknown


def _delimiter(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    character = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if character is not None and (len(character) != 1 or not character.isascii()):
        raise click.BadParameter(f"{value!r} is not one character, or tab")
    return character


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@to_flag
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="The format; by default it follows from the file name, else log.",
)
@pattern_flag
@pairs_flag
@raw_flag
@click.option(
    "--encoding",
    metavar="NAME",
    callback=_encoding,
    help="The encoding, if it is not noticed.",
)
@click.option(
    "--delimiter", metavar="CHARACTER", callback=_delimiter, help="What separates CSV columns; `tab` is one."
)
@click.option(
    "--on-error",
    type=click.Choice(("fail", "keep", "skip")),
    default="fail",
    show_default=True,
    help="CSV and JSON lines that cannot be read: load nothing, keep them in _raw, or leave them out.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    callback=_names,
    help="Column names of a CSV file without a header line, separated by commas.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    callback=_types,
    help="Set the type of a column instead of guessing it.",
)
@text_flag
@click.option(
    "--partition-by", multiple=True, metavar="COLUMN", help="Partition a new table; may be repeated."
)
@click.option("--again", is_flag=True, help="Load files even if the table has them already.")
@dry_run_flag
@verb
def load(
    *,
    files: tuple[str, ...],
    target: str,
    form: str | None,
    pattern: str | None,
    with_pairs: bool,
    with_raw: bool,
    encoding: str | None,
    delimiter: str | None,
    on_error: str,
    columns: tuple[str, ...],
    types: dict[str, Any],
    texts: tuple[str, ...],
    partition_by: tuple[str, ...],
    again: bool,
    dry_run: bool,
    settings: Flags,
) -> None:
    """Load CSV, JSON lines, Parquet or log files.

    Columns and types are guessed from the first file and shown; with --dry-run they
    are only shown. In a log file, times and common line formats are recognised.

    \b
    indextables load access.log --to /data/access
    indextables load orders-*.csv --to /data/orders --type code=string --text note
    indextables load lines.tsv --to /data/lines --columns system,line
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    from indextables.ingest.files import Reading, log_summary, open_input
    from indextables.ingest.loaded import load_txn, loaded_form, place_at, refuse_loaded
    from indextables.ingest.not_fitting import TypesDiffer
    from indextables.ops.write.save import newest, save, with_kinds, with_text

    snapshot = newest(open_log(target, settings.options))
    if snapshot is not None and not again:
        for path in files:
            refuse_loaded(path, snapshot.txns, target)
    source = open_input(
        files, form, pattern, types, log=loaded_form(snapshot.txns) if snapshot else None, names=columns,
        with_pairs=with_pairs, with_raw=with_raw,
        encoding=encoding, delimiter=delimiter, on_error=on_error,
    )  # fmt: skip
    chosen = _kinds(source.kinds, texts, source.log, settings, partition_by=partition_by, snapshot=snapshot)
    as_text = render.Form.TEXT is settings.form
    if as_text:
        _show_guess(source, chosen, partition_by)
    if dry_run:
        if not as_text:
            render.show(_guess(source, chosen, partition_by), settings.form)
        return
    began = time.perf_counter()
    options = with_kinds(with_text(settings.options, texts), chosen)
    log = open_log(target, options)
    places = [place_at(path, size) for path, size in zip(source.paths, source.sizes, strict=True)]
    txn = load_txn(places, source.log, again=again)
    widened: list[str] = []
    while True:
        reading = Reading()
        try:
            done = save(log, _watched(source, reading), "append", options, partition_by, source.schema, txn)
            break
        except TypesDiffer as different:
            source, note = source.with_wider_types(different)
            widened.append(note)
    render.show_notes([*widened, *reading.notes])
    if not as_text:
        summaries = [log_summary(path, lines) for path, lines in reading.logs.items() if lines.without_time]
        render.show_notes(summaries)
        render.show(done.to_arrow(), settings.form)
        return
    for path, lines in reading.logs.items():
        click.echo(render.printable(log_summary(path, lines)))
    seconds = time.perf_counter() - began
    click.echo(
        f"Loaded {counted(done.rows, 'row')} in {seconds:.1f} s into version {done.version} of {log.uri}.\n"
        f"Next: {shlex.join(['indextables', 'serve', target])}"
    )


def _table(
    target: str, schema: pa.Schema, texts: tuple[str, ...], kinds: Mapping[str, str], settings: Flags
) -> Table:
    from indextables.ops.write.save import with_kinds, with_text
    from indextables.table import Table

    if Table.exists(target, settings.options):
        return Table.open(target, options=settings.options)
    options = with_kinds(with_text(settings.options, texts), kinds)
    return Table.create(target, schema, options=options.explicit)


def _kinds(
    automatic: Mapping[str, str],
    texts: tuple[str, ...],
    log: LogForm | None,
    settings: Flags,
    *,
    partition_by: Sequence[str] = (),
    snapshot: Snapshot | None = None,
) -> dict[str, str]:
    """The index of each column: by the flag, else by what the first rows are like.

    Nested columns, and those of few values unless `indexing.auto` is false, get one when the table is made.
    """
    from indextables.ops.table_settings import settings_of
    from indextables.options import Options

    kinds = dict.fromkeys(texts, "text") or {name: kind for name, kind in automatic.items() if kind == "text"}
    if log is not None:
        kinds["message"] = "text"
    if snapshot is not None:
        there = settings_of(snapshot).columns
        return {name: kind for name, kind in kinds.items() if name in texts or name not in there}
    added = ("json",) if Options.of(settings.options).indexing.auto is False else ("json", "string")
    new = {name: kind for name, kind in automatic.items() if kind in added and name not in partition_by}
    return new | kinds


def _watched(source: InputFiles, reading: Reading) -> pa.RecordBatchReader:
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        with render.watching(of_bytes=True) as progress:
            for batch in source.batches(reading):
                progress("Loading", reading.done_bytes, reading.total_bytes)
                yield batch

    return pa.RecordBatchReader.from_batches(source.schema, batches())


def _guess(source: InputFiles, kinds: Mapping[str, str], partition_by: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa

    from indextables.model.types import type_to_sql

    uses = [
        ", ".join([*_USES.get(kinds.get(name, ""), ()), *(["partition"] if name in partition_by else [])])
        for name in source.schema.names
    ]
    types = [type_to_sql(item.type) for item in source.schema]
    return pa.table({"column": source.schema.names, "type": types, "use": uses})


_USES = {
    "text": ("searched by words",),
    "json": ("searched by words and fields",),
    "string": ("searched by value",),
}


def _show_guess(source: InputFiles, kinds: Mapping[str, str], partition_by: tuple[str, ...]) -> None:
    what = (
        f"a log of {source.log.name}"
        if source.log
        else {"csv": "CSV", "jsonl": "JSON lines"}.get(source.form, "Parquet")
    )
    count = f"{len(source.paths)} files" if len(source.paths) > 1 else source.paths[0]
    click.echo(render.printable(f"{count}, read as {what}:"))
    render.show(_guess(source, kinds, partition_by), render.Form.TEXT)
    if source.form == "csv" and not source.names:
        numbers = [name for name in source.schema.names if name.replace(".", "", 1).isdigit()]
        if numbers:
            note = (
                f"the first line of {source.paths[0]} was taken as headings, but {numbers[0]} is a number; "
                "if it is a row, name the columns with --columns A,B"
            )
            render.show_notes([note])


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@to_flag
@click.option("-f", "--follow", is_flag=True, help="Wait for new lines, until Ctrl-C.")
@click.option(
    "--every", default=5.0, show_default=True, type=click.FloatRange(min=0.1), help="Seconds between commits."
)
@pattern_flag
@pairs_flag
@raw_flag
@text_flag
@verb
def tail(
    *,
    file: str,
    target: str,
    follow: bool,
    every: float,
    pattern: str | None,
    with_pairs: bool,
    with_raw: bool,
    texts: tuple[str, ...],
    settings: Flags,
) -> None:
    """Load the new lines of a log file, each exactly once.

    Each commit stores the position in the file, so a restart continues where the
    last run stopped. A file that is rotated, or a link that points elsewhere, is read
    to its end first, then the new file from its start. Small splits (data files) are
    merged from time to time.

    For example: indextables tail -f /var/log/app.log --to /data/app
    """
    from indextables.ingest.tail import Tailer

    rows = commits = 0
    try:
        while (
            guess := _form(file, target, pattern, settings, wait=follow, pairs=with_pairs, raw=with_raw)
        ) is None:
            time.sleep(every)
        form, automatic = guess
        kinds = _kinds(automatic, texts, form, settings)
        table = _table(target, form.schema, texts, kinds, settings)
        tailer = Tailer(file, table, form, lambda note: render.show_notes([note]))
        while True:
            new = tailer.poll()
            if new:
                rows, commits = rows + new, commits + 1
                facts = {"rows": new, "version": table.version, "offset": tailer.offset}
                render.show_line(settings.form, facts)
            elif not follow:
                return
            else:
                time.sleep(every)
    except KeyboardInterrupt:
        # The way to end it; a commit that was under way is complete or absent, and the next run knows.
        if settings.form is render.Form.TEXT:
            click.echo(f"Stopped after {counted(rows, 'row')} in {counted(commits, 'commit')}.")


def _form(
    file: str, target: str, pattern: str | None, settings: Flags, *, wait: bool, pairs: bool, raw: bool
) -> tuple[LogForm, Mapping[str, str]] | None:
    """How lines are taken apart, and which index columns get: as in the last run, or by the first lines.

    None if that takes a line to know, and there is none yet.
    """
    from pathlib import Path

    from indextables.ingest.files import open_input
    from indextables.ingest.loaded import loaded_form
    from indextables.ingest.tail import saved_form
    from indextables.table import Table

    last_form = None
    if pattern is None and Table.exists(target, settings.options):
        table = Table.open(target, options=settings.options)
        saved = saved_form(table, file)
        if saved is not None:
            return saved, {}
        last_form = loaded_form(table.log.snapshot().txns)
    if wait and not (Path(file).is_file() and Path(file).stat().st_size):
        return None
    source = open_input([file], "log", pattern, with_pairs=pairs, with_raw=raw, log=last_form)
    assert source.log is not None
    return source.log, source.kinds


VERBS = (load, tail)
