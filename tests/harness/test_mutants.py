"""Mutants are drawn by their seed, parse, and are noticed by a test that covers their line."""

from __future__ import annotations

import json
import textwrap

import pytest

from harness.mutants import REASONS, RESULT, Coverage, Laboratory, Mutant, draw
from harness.mutations import mutations
from harness.page import mutant_counts

SOURCE = textwrap.dedent(
    '''
    """A module."""

    LIMIT = 3


    def few(rows, names):
        """Whether there are few rows."""
        if rows and not names:
            raise ValueError(f"{len(names) + 1} names")
        return len(rows) < LIMIT or min(rows, names) in {0}
    '''
)


def test_each_mutation_changes_one_thing_and_parses():
    made = {(mutation.was, mutation.becomes) for mutation in mutations(SOURCE)}
    assert {
        ("3", "(4)"),
        ("3", "(2)"),
        ("rows and not names", "(rows or not names)"),
        ("rows and not names", "not (rows and (not names))"),
        ("not names", "(names)"),
        ('raise ValueError(f"{len(names) + 1} names")', "pass"),
        ("len(rows) < LIMIT", "(len(rows) <= LIMIT)"),
        ("min(rows, names)", "(min(names, rows))"),
        ("return len(rows) < LIMIT or min(rows, names) in {0}", "return None"),
    } <= made
    for mutation in mutations(SOURCE):
        changed = mutation.apply(SOURCE)
        assert changed != SOURCE
        assert changed.count("\n") == SOURCE.count("\n")


def test_the_texts_of_messages_and_docstrings_are_left_alone():
    assert not [mutation for mutation in mutations(SOURCE) if mutation.was in {"1", "len(names) + 1"}]
    assert not [mutation for mutation in mutations(SOURCE) if mutation.was.startswith('"""')]


@pytest.fixture
def tree(tmp_path):
    """A package with one covered function, and its coverage."""
    for name in ("log/commit", "log/checkpoint", "ops/write", "ops/rewrite"):
        (tmp_path / "src/indextables" / name).mkdir(parents=True)
    for name in ("__init__.py", "log/__init__.py", "log/commit/__init__.py", "log/retention.py"):
        (tmp_path / "src/indextables" / name).write_text("")
    (tmp_path / "src/indextables/log/commit/few.py").write_text(SOURCE)
    tests = {"tests/test_few.py::test_a": 0.1, "tests/test_few.py::test_b": 0.2}
    lines = {"4": ["import"], "9": ["tests/test_few.py::test_a"], "11": list(tests)}
    return tmp_path, Coverage({"log/commit/few.py": lines}, tests, [])


def test_a_seed_decides_the_order_and_only_covered_lines_are_drawn(tree):
    root, coverage = tree
    one, two, other = (draw(root / "src/indextables", coverage, seed) for seed in (11, 11, 12))
    assert one == two
    assert one != other
    assert sorted(one, key=lambda mutant: mutant.name) == sorted(other, key=lambda mutant: mutant.name)
    assert {mutant.mutation.line for mutant in one} == {4, 9, 11}


def test_a_line_of_the_import_is_covered_by_every_test_of_its_module(tree):
    root, coverage = tree
    mutants = {mutant.mutation.line: mutant for mutant in draw(root / "src/indextables", coverage, 11)}
    assert list(coverage.tests_of(mutants[9])) == ["tests/test_few.py::test_a"]
    assert list(coverage.tests_of(mutants[4])) == ["tests/test_few.py::test_a", "tests/test_few.py::test_b"]


@pytest.mark.parametrize(("was", "becomes", "end"), [("3", "(2)", "test"), ("3", "(4)", "survived")])
def test_a_mutant_lives_in_a_copy_and_a_test_that_fails_ends_it(tree, was, becomes, end):
    root, _ = tree
    (root / "tests").mkdir()
    (root / "tests/test_few.py").write_text(
        "from indextables.log.commit.few import few\n\ndef test_a():\n    assert few([1, 2], [1, 2])\n"
    )
    coverage = Coverage(
        {"log/commit/few.py": {"4": ["tests/test_few.py::test_a"]}}, {"tests/test_few.py::test_a": 0.1}, []
    )
    [mutation] = [found for found in mutations(SOURCE) if (found.was, found.becomes) == (was, becomes)]
    laboratory = Laboratory(root, histories={})
    try:
        fate = laboratory.try_out(Mutant("log/commit/few.py", mutation), coverage)
    finally:
        laboratory.close()
    assert (fate.end, fate.by) == (end, "tests/test_few.py::test_a" if end == "test" else "")
    assert (root / "src/indextables/log/commit/few.py").read_text() == SOURCE


def test_the_survivors_of_the_kept_run_are_equivalent_mutants_with_a_reason():
    kept = json.loads(RESULT.read_text())
    assert mutant_counts(kept)["unexplained"] == 0, "write a test, or say why nothing can notice the change"
    assert all(len(reason["why"]) > 20 for reason in json.loads(REASONS.read_text()))
