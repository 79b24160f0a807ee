"""A program that writes a log, and whoever rotates it: what was written, and which of it must arrive.

Lines are unique. A *generation* is what was written to one file between two rotations. What the documentation
says of `tail` (docs/howto/logs.md) is what is demanded:

- a line is in the table at most once, and only as it was written;
- every whole line of a generation arrives if the file or a copy of it is still in its directory and the table
  held a line of it when it was rotated, or holds one at the end;
- a generation that came and went before anybody read a line of it may be missing as a whole; one that was
  removed or cut short without a copy may be missing in part.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE_S = 3.0
KINDS = ("rename", "rename", "rename", "copytruncate", "copytruncate", "remove", "truncate", "rewrite")


@dataclass
class Generation:
    """What was written to one file."""

    number: int
    file: Path
    lines: list[str] = field(default_factory=list)
    half: str = ""
    """The beginning of a line that has no end yet."""
    gone: bool = False
    """Removed or cut short without a copy: what was not read by then cannot be read any more."""
    is_renamed: bool = False
    """Still the same file, under another name than the one that is followed."""
    is_known: bool = False
    """Whether the table held a line of it when it was rotated."""


class Rotation:
    """A log that grows and is rotated; a seed decides how."""

    def __init__(self, folder: Path, chance: random.Random, arrived: Callable[[], Collection[str]]) -> None:
        self.folder, self.chance, self._arrived = folder, chance, arrived
        self.by_link = chance.random() < 0.25
        """The name that is followed is a link, and a rotation points it to another file."""
        self.log = folder / "app.log"
        self.rotations: Counter[str] = Counter()
        self.generations: list[Generation] = []
        self._begin()

    @property
    def current(self) -> Generation:
        """What is written now."""
        return self.generations[-1]

    def step(self) -> None:
        """Write something, or rotate."""
        kinds = ["link"] if self.by_link else KINDS
        # No more files than `tail` keeps in sight.
        rotation = (
            [self.chance.choice(kinds)] if len(self.generations) < 8 and self.chance.random() < 0.25 else []
        )
        if rotation and self.current.lines:
            if self.chance.random() < 0.8:
                self._wait(whole=rotation[0] in {"remove", "truncate", "rewrite"})
            self.current.is_known = self._is_known(self.current)
            self.rotations[rotation[0]] += 1
            getattr(self, f"_{rotation[0]}")()
        elif self.chance.random() < 0.2:
            self._write_half()
        elif self.chance.random() < 0.15:
            self._write_late()
        else:
            self._write(self.current, self.chance.choice((1, 2, 5, 40)))

    # Writing

    def _begin(self) -> None:
        number = len(self.generations)
        file = self.folder / f"day{number}.log" if self.by_link else self.log
        self.generations.append(Generation(number, file))
        if self.by_link:
            file.touch()
            pointer = self.folder / "next"
            pointer.symlink_to(file)
            os.replace(pointer, self.log)

    def _line(self, generation: Generation, number: int) -> str:
        filling = "x" * self.chance.randrange(self.chance.choice((2, 30, 3000)))
        return f"g{generation.number}n{number} {filling}."

    def _write(self, generation: Generation, count: int) -> None:
        """Write whole lines, after the end of a line that was begun."""
        begun = [generation.half] if generation.half else []
        first = len(generation.lines) + len(begun)
        lines = [self._line(generation, first + at) for at in range(count)]
        # Noted first: a line that arrives was written.
        generation.lines += [*begun, *lines]
        generation.half = ""
        with generation.file.open("a") as out:
            out.write("".join(f"{line}\n" for line in ["" for _ in begun] + lines))

    def _write_half(self) -> None:
        """The beginning of a line; what is written next ends it."""
        generation = self.current
        if not generation.half:
            generation.half = self._line(generation, len(generation.lines))
            with generation.file.open("a") as out:
                out.write(generation.half)

    def _write_late(self) -> None:
        """The program has not noticed a rotation yet, and writes to a file that was renamed."""
        renamed = [item for item in self.generations[:-1] if item.is_renamed and item.is_known]
        if renamed:
            self._write(self.chance.choice(renamed), 1)

    # Rotating

    def _aside(self) -> Path:
        return self.folder / f"app.log.{self.current.number}"

    def _rename(self) -> None:
        self.current.file = self.log.rename(self._aside())
        self.current.is_renamed = True
        self._begin()

    def _copytruncate(self) -> None:
        """A copy is made and the file cut, which keeps its inode; the half line is in the copy only."""
        aside = self._aside()
        aside.write_bytes(self.log.read_bytes())
        self.current.file = aside
        os.truncate(self.log, 0)
        self._begin()

    def _remove(self) -> None:
        """The file is removed and another one created, which may get its inode."""
        self.current.gone = True
        self.log.unlink()
        self._begin()

    def _truncate(self) -> None:
        self.current.gone = True
        os.truncate(self.log, 0)
        self._begin()

    def _rewrite(self) -> None:
        """Other content under the same inode, at once longer than what was read."""
        self.current.gone = True
        self._begin()
        size = self.log.stat().st_size
        while sum(map(len, self.current.lines)) <= size:
            self.current.lines.append(self._line(self.current, len(self.current.lines)))
        with self.log.open("r+") as out:
            out.truncate(0)
            out.write("".join(f"{line}\n" for line in self.current.lines))

    def _link(self) -> None:
        self.current.is_renamed = True
        self._begin()

    # What must arrive

    def _is_known(self, generation: Generation) -> bool:
        return bool(set(generation.lines) & set(self._arrived()))

    def _wait(self, *, whole: bool) -> None:
        """Give `tail` some time to read a line of the current file, or the whole of it."""
        deadline = time.monotonic() + _PATIENCE_S
        lines = set(self.current.lines)
        while time.monotonic() < deadline:
            arrived = lines & set(self._arrived())
            if arrived and (not whole or len(arrived) == len(lines)):
                return
            time.sleep(0.05)

    def findings(self, arrived: Counter[str]) -> list[str]:
        """What the table has and must not, or lacks and must have."""
        found = [f"{line[:40]} is there {times} times" for line, times in arrived.items() if times > 1]
        written = {line for item in self.generations for line in item.lines}
        halves = {item.half for item in self.generations if item.half}
        found += [f"{line[:60]} was never written" for line in arrived.keys() - written - halves]
        for item in self.generations:
            missing = [line for line in item.lines if line not in arrived]
            untouched = len(missing) == len(item.lines)
            if missing and not item.gone and (item.is_known or item is self.current or not untouched):
                found.append(f"generation {item.number} lacks {len(missing)} lines, first {missing[0][:40]}")
        return found

    def excused(self, arrived: Counter[str]) -> int:
        """Lines that are missing and may be."""
        return sum(line not in arrived for item in self.generations for line in item.lines)
