"""Following a file: no line is lost or comes twice, however the file is rotated and whenever it is restarted."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import indextables as it
from indextables.ingest.files import open_input
from indextables.ingest.log_lines import LogForm
from indextables.ingest.tail import Tailer
from indextables.model.actions import TxnAction
from indextables.ops.read.follow import Follower

ISO = "2024-05-03 10:00:{:02},123 ERROR disk {} is full\n"
PLAIN = LogForm("plain lines", None)


class World:
    """A followed file, its table, and a process that can be killed and started again at any time."""

    def __init__(self, folder: Path, name: str = "app.log") -> None:
        self.folder = folder
        self.log = folder / name
        self.table = it.Table.create(folder / "t", PLAIN.schema)
        self.notes: list[str] = []
        self.restart()

    def restart(self) -> None:
        """The process ends without a chance to do anything, and another begins."""
        self.tailer = Tailer(str(self.log), it.Table.open(self.folder / "t"), PLAIN, self.notes.append)

    def write(self, *lines: str, to: Path | None = None, end: str = "\n") -> None:
        with (to or self.log).open("a") as out:
            out.write("".join(line + end for line in lines))

    def poll(self) -> int:
        rows = 0
        while new := self.tailer.poll():
            rows += new
        return rows

    def lines(self) -> list[str]:
        return sorted(it.Table.open(self.folder / "t").scan().read_all()["message"].to_pylist())


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture(params=[False, True], ids=["running", "restarted"])
def between(request, world):
    """What happens while the file is replaced: the process runs on, or it is killed and started again."""

    def happen():
        if request.param:
            world.restart()

    return happen


def same_inode(path: Path, text: str) -> None:
    """Put other contents into a file that keeps its inode, as ext4 does for one that is removed and created."""
    inode = path.stat().st_ino
    with path.open("w") as out:
        out.write(text)
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("count", [1, 3, 6], ids=["shorter", "as long", "longer"])
def test_other_contents_under_the_same_inode_are_a_new_file(world, between, count):
    world.write("a1", "a2", "a3")
    assert world.poll() == 3
    same_inode(world.log, "".join(f"b{n}\n" for n in range(count)))
    between()
    assert world.poll() == count
    assert world.lines() == sorted(["a1", "a2", "a3", *(f"b{n}" for n in range(count))])
    assert any("another file" in note for note in world.notes)
    assert world.poll() == 0


def test_a_removed_file_that_is_created_again_is_read_from_its_start(world, between):
    world.write("a1", "a2")
    assert world.poll() == 2
    world.log.unlink()
    between()
    assert world.poll() == 0
    world.write("b1", "b2", "b3")
    between()
    assert world.poll() == 3
    assert world.lines() == ["a1", "a2", "b1", "b2", "b3"]


def test_the_rest_of_a_renamed_file_comes_before_its_successor(world, between):
    world.write("a1")
    assert world.poll() == 1
    world.write("a2")
    world.log.rename(world.folder / "app.log.1")
    world.write("b1")
    between()
    assert world.tailer.poll() == 1
    assert world.lines() == ["a1", "a2"]
    between()
    assert world.poll() == 1
    # The program had not opened the new file yet.
    world.write("a3", to=world.folder / "app.log.1")
    world.write("b2")
    between()
    assert world.poll() == 2
    assert world.lines() == ["a1", "a2", "a3", "b1", "b2"]


def test_the_copy_of_a_file_that_was_cut_short_has_its_rest(world, between):
    world.write("a1", "a2")
    assert world.poll() == 2
    world.write("a3")
    (world.folder / "app.log.1").write_bytes(world.log.read_bytes())
    same_inode(world.log, "b1 is longer than all of the other lines\n")
    between()
    assert world.poll() == 2
    assert world.lines() == ["a1", "a2", "a3", "b1 is longer than all of the other lines"]


def test_a_rest_that_cannot_be_found_is_said(world, between):
    world.write("a1")
    assert world.poll() == 1
    world.write("a2")
    same_inode(world.log, "b1 b1 b1\n")
    between()
    assert world.poll() == 1
    assert any("neither in its directory" in note for note in world.notes)


def test_a_link_that_points_elsewhere_is_followed_and_may_come_back(tmp_path, between_links):
    world, between = between_links
    monday, tuesday = tmp_path / "monday.log", tmp_path / "tuesday.log"
    world.write("m1", to=monday)
    world.log.symlink_to(monday)
    assert world.poll() == 1
    world.write("m2", to=monday)
    world.write("t1", "t2", to=tuesday)
    world.log.unlink()
    world.log.symlink_to(tuesday)
    between()
    assert world.poll() == 3
    world.write("m3", to=monday)
    world.log.unlink()
    world.log.symlink_to(monday)
    between()
    assert world.poll() == 1
    assert world.lines() == ["m1", "m2", "m3", "t1", "t2"]


@pytest.fixture(params=[False, True], ids=["running", "restarted"])
def between_links(request, tmp_path):
    world = World(tmp_path, "current.log")
    return world, (world.restart if request.param else lambda: None)


def test_half_a_line_waits_for_its_end_and_is_taken_when_the_file_is_gone(world, between):
    world.write("a1")
    world.write("a2 ha", end="")
    assert world.poll() == 1
    world.write("lf")
    between()
    assert world.poll() == 1
    world.write("a3 has no end", end="")
    between()
    assert world.poll() == 0
    held = world.log.open("rb")
    world.log.unlink()
    world.write("b1")
    assert world.poll() == 2
    held.close()
    assert world.lines() == ["a1", "a2 half", "a3 has no end", "b1"]


def test_a_file_that_disappears_for_a_while_goes_on_where_it_was(world, between):
    world.write("a1")
    assert world.poll() == 1
    world.log.rename(world.folder / "elsewhere")
    between()
    assert world.poll() == 0
    world.write("a2", to=world.folder / "elsewhere")
    between()
    assert world.poll() == 1
    (world.folder / "elsewhere").rename(world.log)
    world.write("a3")
    between()
    assert world.poll() == 1
    assert world.lines() == ["a1", "a2", "a3"]


def test_machines_that_follow_files_of_the_same_path_do_not_disturb_one_another(world):
    other = world.folder / "other machine"
    other.mkdir()
    for round_ in range(3):
        world.write(f"one {round_}")
        world.restart()
        assert world.poll() == 1
        swap(world.log, other / "app.log")
        world.write(f"two {round_}")
        world.restart()
        assert world.poll() == 1
        swap(world.log, other / "app.log")
    assert world.lines() == [f"{name} {n}" for name in ("one", "two") for n in range(3)]


def swap(here: Path, there: Path) -> None:
    """What the other machine has under the same path."""
    aside = there.parent / "aside"
    here.rename(aside)
    if there.exists():
        there.rename(here)
    aside.rename(there)


def test_two_processes_that_follow_one_file_bring_each_line_once(world):
    one = world.tailer
    world.restart()
    other = world.tailer
    for n in range(6):
        world.write(f"a{n}")
        if n % 3 == 0:
            one.poll()
        if n % 2 == 0:
            other.poll()
    assert one.poll() + other.poll() >= 0
    assert one.poll() == other.poll() == 0
    assert world.lines() == [f"a{n}" for n in range(6)]


def test_a_position_of_0_2_0_is_continued(world):
    world.write("a1", "a2")
    path, inode = os.path.realpath(world.log), world.log.stat().st_ino
    txn = TxnAction(app_id=f"tail:{path}:{inode}#0", version=3)
    world.table.append(it_rows(["a1"]), txn=txn)
    world.restart()
    assert world.poll() == 1
    world.write("a3")
    world.restart()
    assert world.poll() == 1
    assert world.lines() == ["a1", "a2", "a3"]


def it_rows(lines):
    import pyarrow as pa

    return pa.table({"message": lines}, PLAIN.schema)


def test_a_position_survives_a_checkpoint(world):
    world.write("a1")
    assert world.poll() == 1
    it.Table.open(world.folder / "t").checkpoint()
    world.write("a2")
    world.restart()
    assert world.poll() == 1
    assert world.lines() == ["a1", "a2"]


def test_a_commit_whose_answer_is_lost_is_neither_repeated_nor_left_out(world, monkeypatch):
    world.write("a1")
    append = it.Table.append

    def lost(table, *args, **kwargs):
        append(table, *args, **kwargs)
        raise it.errors.CommitError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(it.Table, "append", lost)
        with pytest.raises(it.errors.CommitError):
            world.poll()
    world.write("a2")
    assert world.poll() == 1
    assert world.lines() == ["a1", "a2"]


class Rotations(World):
    """A drawn schedule of writing, reading, rotating and killing, and the lines that were written."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        self.written: list[str] = []
        self.unread: list[str] = []
        """Lines of the file that has the name, and that nobody has read."""
        self.unreadable: list[str] = []
        """Lines that were gone before anybody could read them, or know where to look for them."""
        self.forgettable: list[str] = []
        """Unread lines of renamed files of which the table holds nothing: a process that ends forgets them."""
        self.is_begun = False
        """Whether the table holds a line of the file that has the name now, so the file is known to it."""
        self.rotated = 0
        super().__init__(folder)

    def step(self, number: int) -> None:
        actions = (
            ["write"] * 6 + ["read"] * 4 + ["half", "rename", "copytruncate", "remove", "truncate", "kill"]
        )
        action = self.rng.choice(actions)
        if self.log.exists() or action in {"write", "half", "read", "kill"}:
            getattr(self, f"do_{action}")(f"{number} ")

    def maybe(self, action) -> None:
        if self.rng.random() < 0.5:
            action()

    def add(self, line: str) -> None:
        self.write(line)
        self.written.append(line)
        self.unread.append(line)

    def restart(self) -> None:
        super().restart()
        self.unreadable += self.forgettable
        self.forgettable.clear()

    def read(self) -> None:
        self.poll()
        self.forgettable.clear()
        self.is_begun |= bool(self.unread)
        self.unread.clear()

    def gone(self) -> None:
        self.unreadable += self.unread
        self.begin()

    def begin(self) -> None:
        self.unread.clear()
        self.is_begun = False

    def do_write(self, name: str) -> None:
        self.add(name + "x" * self.rng.randrange(self.rng.choice([3, 2000])))

    def do_half(self, name: str) -> None:
        self.write(name, end="")
        self.read()
        self.write("half")
        self.written.append(name + "half")
        self.unread.append(name + "half")

    def do_read(self, _name: str) -> None:
        self.read()

    def do_kill(self, _name: str) -> None:
        self.restart()

    def do_rename(self, name: str) -> None:
        self.read()
        self.maybe(lambda: self.add(name + "late"))
        self.rotated += 1
        old = self.log.rename(self.folder / f"app.log.{self.rotated}")
        is_known = self.is_begun
        if not is_known:
            self.forgettable += self.unread
        self.maybe(self.restart)
        self.begin()
        self.add(name + "first")
        self.maybe(self.read)
        if is_known and self.is_begun and self.rng.random() < 0.5:
            self.write(name + "later", to=old)
            self.written.append(name + "later")

    def do_copytruncate(self, _name: str) -> None:
        self.rotated += 1
        (self.folder / f"app.log.{self.rotated}").write_bytes(self.log.read_bytes())
        os.truncate(self.log, 0)
        self.maybe(self.restart)
        if not self.is_begun:
            self.gone()
        self.read()
        self.begin()

    def do_remove(self, name: str) -> None:
        self.maybe(self.read)
        self.log.unlink()
        self.maybe(self.restart)
        self.gone()
        self.add(name + "anew")
        self.read()

    def do_truncate(self, _name: str) -> None:
        os.truncate(self.log, 0)
        self.gone()
        self.maybe(self.restart)
        self.read()


@pytest.mark.parametrize("seed", range(40))
def test_every_line_arrives_once_under_any_schedule_of_rotations(tmp_path, seed):
    world = Rotations(tmp_path, random.Random(seed))
    for number in range(40):
        world.step(number)
    world.poll()
    lines = world.lines()
    assert len(lines) == len(set(lines))
    assert set(lines) <= set(world.written)
    assert set(world.written) - set(lines) <= set(world.unreadable)


def test_the_form_of_the_lines_stays_when_the_new_file_has_none_yet(run, tmp_path):
    log = tmp_path / "app.log"
    log.write_text(ISO.format(1, 1))
    assert run("tail", log, "--to", tmp_path / "t")[0] == 0
    with log.open("a") as out:
        out.write(ISO.format(2, 2))
    log.rename(tmp_path / "app.log.1")
    log.write_text("")
    code, out, err = run("tail", log, "--to", tmp_path / "t", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 1), err
    assert it.Table.open(tmp_path / "t").count("level = 'ERROR'") == 2


def test_the_verb_brings_everything_in_and_ends(run, tmp_path):
    (tmp_path / "app.log").write_text(ISO.format(1, 1) + ISO.format(2, 2))
    code, out, err = run("tail", tmp_path / "app.log", "--to", tmp_path / "t", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 2
    assert run("tail", tmp_path / "app.log", "--to", tmp_path / "t", "--json")[1] == ""
    assert it.Table.open(tmp_path / "t").count(query="full") == 2
    code, _, err = run("tail", tmp_path / "none.log", "--to", tmp_path / "u")
    assert (code, "there is no file" in err) == (1, True)


def test_ctrl_c_ends_following_with_a_summary_and_no_error(tmp_path):
    (tmp_path / "app.log").write_text(ISO.format(1, 1) + ISO.format(2, 2))
    command = [sys.executable, "-m", "indextables", "tail", "-f", "app.log", "--to", "t"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        try:
            assert "rows 2" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    assert out == "Stopped after 2 rows in 1 commit.\n"


def test_a_time_that_cannot_be_read_is_said_once(run, tmp_path):
    (tmp_path / "app.log").write_text("2023-02-28 10:00:00 a\n2023-02-29 10:00:00 b\n")
    code, _, err = run("tail", tmp_path / "app.log", "--to", tmp_path / "t")
    assert (code, err.count("no time that can be read")) == (0, 1)


def test_following_a_search_sees_appends_and_passes_over_changes(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(ISO.format(1, 1))
    source = open_input([str(log)], "log")
    table = it.Table.create(tmp_path / "t", source.schema, options={"indexing.typemap.message": "text"})
    tailer = Tailer(str(log), table, source.log)
    tailer.poll()
    follower = Follower(it.Table.open(tmp_path / "t").log, "disk", None, ["message"])
    with log.open("a") as out:
        out.write(ISO.format(2, 2))
    tailer.poll()
    assert [row for part in follower.poll() for row in part.to_pylist()] == [{"message": "disk 2 is full"}]
    it.Table.open(tmp_path / "t").delete("message LIKE 'disk 1%'")
    assert list(follower.poll()) == []
    assert follower.skipped_commits == 1
