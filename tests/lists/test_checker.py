"""The checker finds every anomaly that it is shown, and none in what is serial."""

from __future__ import annotations

import random

import pytest

from lists.checker import ABORTED, COMMITTED, UNKNOWN, Append, Read, Transaction, check


class History:
    """Transactions one after the other, or all at once."""

    def __init__(self, *, overlapping: bool = True) -> None:
        self.transactions: list[Transaction] = []
        self.overlapping = overlapping

    def add(self, *operations: Append | Read, **more) -> Transaction:
        number = len(self.transactions)
        ended = 1000.0 if self.overlapping else number + 0.5
        given = {
            "process": f"p{number}",
            "outcome": COMMITTED,
            "began": float(number),
            "ended": ended,
            **more,
        }
        self.transactions.append(Transaction(f"T{number}", operations=operations, **given))
        return self.transactions[-1]

    def kinds(self) -> set[str]:
        return {anomaly.kind for anomaly in check(self.transactions)}


def a(key: str, element: str) -> Append:
    return Append(key, element)


def r(key: str, elements: str) -> Read:
    return Read.of_list(key, elements.split())


def s(key: str, elements: str) -> Read:
    return Read.of_set(key, elements.split())


@pytest.fixture
def history():
    return History()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("read", [Read.of_list, Read.of_set])
def test_a_serial_history_has_no_anomaly(seed, read):
    chance = random.Random(seed)
    history, lists = History(overlapping=False), {"x": [], "y": [], "z": []}
    for number in range(40):
        operations = [read(key, lists[key]) for key in chance.sample(sorted(lists), chance.randint(0, 3))]
        outcome = chance.choice((COMMITTED, COMMITTED, UNKNOWN, ABORTED))
        appends = [a(key, f"{key}{number}") for key in chance.sample(sorted(lists), chance.randint(0, 2))]
        history.add(*operations, *appends, outcome=outcome)
        for append in appends if outcome == COMMITTED or chance.random() < 0.5 and outcome == UNKNOWN else ():
            lists[append.key].append(append.element)
    history.add(*(read(key, elements) for key, elements in lists.items()), final=True)
    assert check(history.transactions) == []


def test_a_lost_append_is_found_and_an_unknown_one_may_be_missing(history):
    history.add(a("x", "1"))
    history.add(a("x", "2"), outcome=UNKNOWN)
    history.add(r("x", ""), final=True)
    assert [str(found) for found in check(history.transactions)] == [
        "lost append: 1, appended to x by T0 of p0 (committed)"
    ]


def test_an_element_of_a_refused_transaction_is_a_dirty_read(history):
    history.add(a("x", "1"), outcome=ABORTED)
    history.add(s("x", "1"))
    assert history.kinds() == {"G1a"}


def test_an_element_of_an_unknown_transaction_may_be_read(history):
    history.add(a("x", "1"), outcome=UNKNOWN)
    history.add(s("x", "1"))
    assert history.kinds() == set()


def test_a_part_of_what_a_transaction_appended_is_an_intermediate_read(history):
    history.add(a("x", "1"), a("x", "2"))
    history.add(s("x", "1"))
    assert "G1b" in history.kinds()


def test_a_list_that_others_appended_to_amid_a_transaction_is_g0(history):
    history.add(a("x", "1"), a("x", "3"))
    history.add(a("x", "2"))
    history.add(r("x", "1 2 3"))
    assert history.kinds() == {"G0"}


def test_the_elements_of_one_transaction_follow_each_other(history):
    history.add(a("x", "1"), a("x", "2"))
    history.add(r("x", "1 2"))
    assert history.kinds() == set()


def test_an_element_that_is_there_twice_is_found(history):
    history.add(a("x", "1"))
    history.add(r("x", "1 1"))
    assert history.kinds() == {"duplicate element"}


def test_an_element_that_nobody_appended_is_found(history):
    history.add(s("x", "1"))
    assert history.kinds() == {"phantom element"}


def test_an_element_in_a_foreign_list_is_found(history):
    history.add(a("x", "1"))
    history.add(s("y", "1"))
    assert "phantom element" in history.kinds()


@pytest.mark.parametrize(("one", "other"), [("1 2", "2 1"), ("1 2", "1 3")])
def test_two_orders_of_one_list_are_incompatible(history, one, other):
    for element in "123":
        history.add(a("x", element))
    history.add(r("x", one))
    history.add(r("x", other))
    assert history.kinds() == {"incompatible orders"}


def test_two_sets_of_which_none_holds_the_other_are_incompatible(history):
    history.add(a("x", "1"))
    history.add(a("x", "2"))
    history.add(s("x", "1"))
    history.add(s("x", "2"))
    assert history.kinds() == {"incompatible orders"}


def test_writes_in_opposite_orders_are_g0(history):
    history.add(a("x", "1"), a("y", "1"))
    history.add(a("x", "2"), a("y", "2"))
    history.add(r("x", "1 2"), r("y", "2 1"))
    assert "G0" in history.kinds()


def test_two_transactions_that_read_each_other_are_g1c(history):
    history.add(a("x", "1"), r("y", "2"))
    history.add(a("y", "2"), r("x", "1"))
    assert history.kinds() == {"G1c"}


def test_a_lost_update_is_a_cycle(history):
    history.add(r("x", ""), a("x", "1"))
    history.add(r("x", ""), a("x", "2"))
    history.add(r("x", "1 2"), final=True)
    assert history.kinds() == {"G-single"}


def test_a_fractured_read_is_g_single(history):
    history.add(a("x", "1"), a("y", "1"))
    history.add(s("x", "1"), s("y", ""))
    history.add(s("x", "1"), s("y", "1"), final=True)
    assert history.kinds() == {"G-single"}


def test_write_skew_is_g2(history):
    history.add(s("x", ""), a("y", "1"))
    history.add(s("y", ""), a("x", "1"))
    history.add(s("x", "1"), s("y", "1"), final=True)
    assert history.kinds() == {"G2"}


def test_a_long_fork_is_g2(history):
    history.add(a("x", "1"))
    history.add(a("y", "1"))
    history.add(s("x", "1"), s("y", ""))
    history.add(s("x", ""), s("y", "1"))
    history.add(s("x", "1"), s("y", "1"), final=True)
    assert history.kinds() == {"G2"}


def test_a_read_that_misses_what_had_ended_is_found_by_the_clock():
    history = History(overlapping=False)
    history.add(a("x", "1"))
    history.add(s("x", ""))
    history.add(s("x", "1"), final=True)
    assert history.kinds() == {"G-single-realtime"}


def test_a_read_of_an_old_version_may_miss_what_had_ended():
    history = History(overlapping=False)
    history.add(a("x", "1"))
    history.add(s("x", ""), fresh=False)
    history.add(s("x", "1"), final=True)
    assert history.kinds() == set()


def test_a_process_must_see_its_own_appends_unless_it_travels():
    for session in (True, False):
        history = History(overlapping=False)
        history.add(a("x", "1"), process="p")
        history.add(s("x", ""), process="p", fresh=False, session=session)
        history.add(s("x", "1"), final=True)
        assert history.kinds() == ({"G-single-realtime"} if session else set())


def test_a_read_of_the_future_is_found_by_the_clock():
    history = History(overlapping=False)
    history.add(s("x", "1"), fresh=False)
    history.add(a("x", "1"))
    assert history.kinds() == {"G1c-realtime"}


@pytest.mark.parametrize(("version", "elements"), [(3, ""), (2, "1")])
def test_a_version_must_hold_what_was_committed_up_to_it_and_nothing_else(history, version, elements):
    history.add(a("x", "1"), version=3)
    history.add(s("x", elements), version=version, fresh=False)
    assert history.kinds() == {"wrong version"}


def test_a_version_that_holds_its_commits_is_right(history):
    history.add(a("x", "1"), version=3)
    history.add(s("x", "1"), version=3)
    history.add(s("x", ""), version=2, fresh=False)
    assert history.kinds() == set()
