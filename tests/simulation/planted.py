"""Count the histories that each planted bug takes: `python -m simulation.planted`, from `tests`.

Every bug of `simulation.mutants` runs over the seeds from 0 until one breaks a
promise. The counts are kept under benchmarks/results/reliability with the commit
they were made on, and the page shows them; names make it count only those.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from simulation.mutants import MUTANTS
from simulation.run import RESULTS, run_seeds

RESULT = RESULTS / "planted.json"


def count(name: str) -> dict[str, Any] | None:
    """How many histories it takes to notice a bug, and the promise it breaks; None if that is too many."""
    mutant = MUTANTS[name]
    for seed, outcome in run_seeds(mutant.level, range(mutant.within), name):
        if outcome.violations:
            promise = outcome.violations[0].promise
            return {"level": mutant.level, "histories": seed + 1, "promise": promise}
    return None


def commit_of(root: Path) -> str:
    """The commit that the tree is at."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return found.stdout.strip() or os.environ.get("INDEXTABLES_COMMIT", "")


def kept() -> dict[str, Any]:
    """The counts of the last run, by bug; empty if there was none."""
    return json.loads(RESULT.read_text()) if RESULT.exists() else {"bugs": {}}


def main() -> int:
    """Count, keep, and say which bugs were not caught."""
    figures: dict[str, Any] = {"bugs": kept()["bugs"]}
    commit = commit_of(RESULTS)
    missed = []
    for name in sys.argv[1:] or MUTANTS:
        counted = count(name)
        print(name, counted, flush=True)
        if counted is None:
            missed.append(name)
            figures["bugs"].pop(name, None)
        else:
            figures["bugs"][name] = {**counted, "commit": commit}
        figures["bugs"] = {key: figures["bugs"][key] for key in MUTANTS if key in figures["bugs"]}
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
