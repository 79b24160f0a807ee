"""Actions that caches hand to several threads at once are read once and never half."""

from __future__ import annotations

import sys
import threading

import pytest

from indextables.log.format.dialect import NATIVE
from indextables.model.actions import AddAction
from indextables.model.lines import source_of

ADDS = [AddAction(path=f"{number}.split", size=1, num_records=number) for number in range(3000)]


@pytest.fixture
def hasty_threads():
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_that_look_at_one_commit_all_see_its_actions():
    """F: contents of log files are kept and shared."""
    actions = NATIVE.decode_commit(NATIVE.encode_commit(ADDS), name="a commit", version=1)
    failures = []

    def look():
        try:
            for action in actions:
                source_of(action)
                assert (action.num_records, action.extra) == (int(action.path[:-6]), {})
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert actions == ADDS
