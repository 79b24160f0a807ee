"""Real logs of sixteen systems: what the first half of the lines shows is right for the second half."""

import pytest

from benchmarks.log_forms import TRUTH, grade, lines_of
from support.shared import shared

NOT_RECOGNISED = {("BGL", "host"), ("HPC", "host"), ("Zookeeper", "program")}


@pytest.fixture(scope="module")
def real_lines():
    return lines_of(shared("logs", "loghub.tsv.gz"))


@pytest.mark.parametrize("system", TRUTH)
def test_the_parts_of_real_lines_are_recognised(real_lines, system):
    graded = grade(system, real_lines[system])
    assert graded["has"]["ts"] == graded["right"]["ts"] == 1000
    for name, count in graded["has"].items():
        assert graded["right"][name] >= (0 if (system, name) in NOT_RECOGNISED else 0.99 * count), name
