"""Every benchmark can be prepared and run: they use the inside of the library, which moves."""

from __future__ import annotations

import pytest

from benchmarks.harness import load
from benchmarks.run import TARGETS, main

# `ranking` and `index_sizes` read collections from outside, `spark` has a session of its own to start.
ELSEWHERE = {"ranking", "index_sizes", "spark"}


@pytest.mark.long
@pytest.mark.sample
@pytest.mark.parametrize("target", [name for name in TARGETS if name not in ELSEWHERE])
def test_a_benchmark_prepares_its_data_and_answers_its_first_question(target, tmp_path, capsys):
    case = next(case for case in load(target).cases if case.needs is None)
    label = f"{case.name} {case.system}"
    main(
        [
            target, "--sizes", "1k", "--repeat", "1", "--only", label,
            "--work", str(tmp_path / "work"), "--results", str(tmp_path / "results"),
        ]
    )  # fmt: skip
    assert f"{target} 1k {label}: " in capsys.readouterr().out
