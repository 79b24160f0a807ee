"""The command line of harnesses that run seeds one after the other and keep their figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.commit import current_commit

_AT_ONCE = 10
"""Seeds after which figures are kept."""


def run_from_command_line(
    description: str | None, results: Path, tally_type: Any, run: Callable[[range, Any], object]
) -> None:
    """Run the seeds that the command line names, print the tally, and exit with 1 if a seed broke something.

    `run` takes a range of seeds and the tally to add to. With `--until` the seeds go on after those of the
    result file, which is written every ten seeds.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", default="0:20", help="first:end, or one seed")
    parser.add_argument("--until", type=int, help=f"go on up to this seed, and keep {results}")
    arguments = parser.parse_args()
    tally = tally_type()
    if arguments.until is None:
        first, _, end = arguments.seeds.partition(":")
        seeds = range(int(first), int(end or int(first) + 1))
    else:
        tally = tally_type.of_json(json.loads(results.read_text())) if results.exists() else tally
        seeds = range(tally.runs, arguments.until)
    for start in range(seeds.start, seeds.stop, _AT_ONCE):
        run(range(start, min(start + _AT_ONCE, seeds.stop)), tally)
        tally.commit = current_commit()
        if arguments.until is not None:
            results.write_text(json.dumps(tally.to_json(), indent=2) + "\n")
    print(json.dumps(tally.to_json(), indent=2))
    raise SystemExit(1 if tally.broken else 0)
