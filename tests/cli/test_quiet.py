"""Standard error is for what went wrong: a command that succeeds in its own process leaves it empty."""

import io
import logging
import shutil
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.cli.main import PURPOSES, cli
from indextables.cli.render import WarningLines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quiet")
    lines = "".join(f"2024-0{n}-03 10:00:00,123 ERROR disk {n} is full\n" for n in range(1, 10))
    (folder / "a.log").write_text(lines)
    ran = command(folder, "load", "a.log", "--to", "t")
    assert (ran.returncode, ran.stderr) == (0, "")
    it.write(folder / "days", {"day": ["mon", "tue"], "id": [1, 2]}, partition_by="day")
    (folder / "plain").mkdir()
    pq.write_table(
        pa.table({"message": ["disk 1 is full", "all is well"]}), folder / "plain" / "rows.parquet"
    )
    return folder


def command(folder, *arguments):
    program = [sys.executable, "-m", "indextables", *arguments]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


COMMANDS = [
    ("sql", "SELECT level, count(*) FROM './t' GROUP BY level"),
    ("sql", "DESCRIBE INDEXTABLES STATE './t'"),
    ("search", "t", "disk", "--sort", "ts"),
    ("search", "t", "disk", "--facet", "level"),
    ("search", "t", "disk", "--histogram", "ts=30d"),
    ("count", "t", "disk"),
    ("inspect", "t"),
    ("history", "t"),
    ("changes", "t", "1"),
    ("files", "t"),
    ("describe", "state", "t"),
    ("check", "t"),
    ("bench", "t"),
    ("checkpoint", "t"),
    ("merge-splits", "t", "--dry-run"),
    ("tail", "a.log", "--to", "u"),
    ("completion", "bash"),
    ("demo", "--no-spark", "--rows", "1000"),
    ("load", "a.log", "--to", "v"),
    ("report", "t", "-o", "report.html"),
    ("restore", "days", "--to", "1"),
    ("delete", "days", "--where", "id = 1"),
    ("drop-partitions", "days", "--where", "day = 'tue'"),
    ("purge", "days", "--dry-run"),
    ("purge-rows", "t"),
    ("truncate-history", "days"),
    ("repair", "t/_transaction_log", "repaired"),
    ("companion", "build", "plain_index", "--of", "plain", "-i", "message"),
]


def test_every_verb_is_in_the_help_under_one_purpose_and_its_summary_fits_80_columns():
    purposes = [name for verbs in PURPOSES.values() for name in verbs]
    assert sorted(purposes) == sorted(name for name, verb in cli.commands.items() if not verb.hidden)
    context = cli.context_class(cli, info_name="indextables", terminal_width=80)
    lines = cli.get_help(context).splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...")]
    after_options = lines[lines.index("Options:") + 3 :]
    assert len([line for line in after_options if line.startswith("  ")]) == len(purposes)


def test_every_verb_is_run_here():
    verbs = {name for names in PURPOSES.values() for name in names}
    assert {name for name, *_ in COMMANDS} | {"serve", "jar"} == verbs


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_that_succeeds_leaves_standard_error_empty(folder, arguments):
    ran = command(folder, *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_limit_holds_for_a_histogram_and_says_what_it_left_out(folder):
    ran = command(folder, "search", "t", "disk", "--histogram", "ts=30d", "-n", "3", "--csv")
    assert len(ran.stdout.splitlines()) == 1 + 3
    assert "6 more" in ran.stderr


def test_an_empty_directory_is_called_empty(tmp_path):
    with pytest.raises(it.errors.NotATableError, match="The directory is empty"):
        it.Table.open(tmp_path)
    with pytest.raises(it.errors.NotATableError, match="There is nothing there"):
        it.Table.open(tmp_path / "none")


def test_serving_leaves_standard_error_empty_until_ctrl_c_and_after(folder):
    pytest.importorskip("uvicorn")
    program = [sys.executable, "-m", "indextables", "serve", "t", "--port", "0"]
    with subprocess.Popen(
        program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        while "http://" not in (line := server.stdout.readline()):
            assert line, server.stderr and server.stderr.read()
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=60)[1] == ""
    assert server.returncode == 0


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None, reason="the jar needs Java")
def test_the_path_of_the_jar_is_all_that_is_printed(folder):
    ran = command(folder, "jar")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip().endswith(".jar")


def test_a_store_that_fails_is_reported_once(tmp_path):
    where = (
        "-O",
        "aws_endpoint=http://127.0.0.1:9",
        "-O",
        "aws_allow_http=true",
        "-O",
        "storage.max_retries=0",
    )
    keys = ("-O", "aws_access_key_id=a", "-O", "aws_secret_access_key=b", "-O", "aws_region=us-east-1")
    ran = command(tmp_path, "inspect", "s3://bucket/t", *where, *keys)
    assert (ran.returncode, ran.stderr.count("s3://bucket/t/_transaction_log")) == (1, 1)
    assert len(ran.stderr.splitlines()) == 1


def test_a_warning_about_a_store_is_printed_once_unless_the_store_ends_the_command():
    lines = io.StringIO()
    handler = WarningLines(lines)
    logger = logging.Logger("warnings of a store")
    logger.addHandler(handler)
    for took in ("1 ms", "2 ms"):
        logger.warning("%s is ignored: %s", "the hint", it.errors.StorageError(f"no answer in {took}"))
    assert lines.getvalue() == ""
    logger.warning("something else")
    assert lines.getvalue().splitlines() == ["the hint is ignored: no answer in 2 ms", "something else"]
    logger.warning("%s is ignored: %s", "the hint", it.errors.StorageError("no answer"))
    handler.close()
    assert lines.getvalue().splitlines()[2:] == ["the hint is ignored: no answer"]
