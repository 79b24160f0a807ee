"""Every benchmark can be prepared and run: they use the inside of the library, which moves."""

from __future__ import annotations

import json

import pytest

from benchmarks.harness import load
from benchmarks.run import TARGETS, main
from benchmarks.workloads import ADD, DELTA_ADD, File, generated

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


def test_files_made_by_sql_are_the_files_of_the_workload():
    files = sorted((File(number) for number in range(2_500)), key=lambda file: file.path)
    lines = [line for batch in generated(len(files), ADD) for line in batch.column(0).to_pylist()]
    assert [json.loads(line) for line in lines] == [file.native() for file in files]
    for add, file in zip(
        (add for batch in generated(len(files), DELTA_ADD) for add in batch.column(0).to_pylist()),
        files,
        strict=True,
    ):
        expected = file.delta()
        assert json.loads(add.pop("stats")) == json.loads(expected.pop("stats"))
        assert {**add, "partitionValues": dict(add["partitionValues"])} == expected
