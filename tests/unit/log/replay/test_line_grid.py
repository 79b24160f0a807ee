"""Lines read by their layout give what a JSON parser gives, or nothing at all."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.log.checkpoint.add_lines import join_lines, line_array
from indextables.log.lines.line_grid import LineGrid

FIELDS = {"path": None, "size": None, "flag": None, "note": None, "min": ["id", "name"], "gone": ["id"]}


def grid():
    return LineGrid(FIELDS, frozenset({"size"}), frozenset({"flag"}))


def cut(objects):
    texts = [item if isinstance(item, str) else json.dumps(item, separators=(",", ":")) for item in objects]
    return grid().cut(line_array(join_lines([text.encode() for text in texts]), "lines"))


def expected(objects):
    def child(item, name, key):
        return None if item.get(name) is None else {key: item[name].get(key) for key in FIELDS[name]}[key]

    found = {name: [item.get(name) for item in objects] for name, kind in FIELDS.items() if kind is None}
    for name, children in FIELDS.items():
        if children is not None:
            found[name] = [
                None if item.get(name) is None else {key: child(item, name, key) for key in children}
                for item in objects
            ]
    return found


def add(number, **fields):
    return {
        "path": f"a/{number}.split", "size": 10**number, "flag": number % 2 == 0, "note": "x" * number,
        "min": {"id": str(number), "name": f"n{number}"}, "more": {"id": "no", "deep": number}, **fields,
    }  # fmt: skip


def check(objects):
    found = cut(objects)
    assert found is not None
    assert {name: array.to_pylist() for name, array in found.items()} == expected(objects)


def test_values_of_any_length_are_cut_out():
    """The values differ in length from line to line."""
    check([add(number) for number in range(18)])


def test_statistics_inside_a_text_do_not_disturb():
    """A text that looks like an object, as `stats` is one."""
    check([add(n, stats=json.dumps({"nullCount": {"id": n, "min": 5}})) for n in range(12)])


@pytest.mark.parametrize(
    "odd",
    [
        {"path": "b", "size": 1, "min": {"id": "1", "name": "x"}, "more": {"id": "no", "deep": 1}},
        add(3, min=None),
        add(3, note=None),
        add(3, size=None),
        add(3, note='quoted "text"'),
        add(3, min={"name": "first", "id": "second"}),
        add(3, min={"ix": "1", "name": "y"}),
        add(3, more={"min": {"id": "9", "name": "9"}}),
        {"path": "b", "other": {"min": {"id": "7", "name": "q"}, "size": 1, "flag": True, "note": "n"}},
        add(3, gone={"id": "here"}),
        add(3, more={"id": "no", "deep": 1, "size": 4}),
    ],
)
def test_lines_of_another_layout_among_them_are_read_right(odd):
    """Another order, a field more or less, a null, the same names inside another object."""
    plain = [add(number) for number in range(5)]
    for at in (0, 2, 5):
        check([*plain[:at], odd, *plain[at:]])


@pytest.mark.parametrize(
    "odd", [add(3, note="tab\there"), add(3, size="5"), add(3, size=1.5), add(3, list=[1])]
)
def test_what_takes_a_parser_is_left_to_one(odd):
    """Escapes, numbers in quotes or with a fraction, arrays."""
    assert cut([add(1), odd]) is None


TEXTS = st.text(alphabet='ab{}":,\\ 1', max_size=6)
VALUES = st.one_of(TEXTS, st.none())


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["path", "note", "min", "gone", "other", "more", "size"]),
            st.one_of(
                VALUES, st.dictionaries(st.sampled_from(["id", "name", "min", "x"]), VALUES, max_size=3)
            ),
            min_size=1,
            max_size=5,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_lines_are_read_as_a_parser_reads_them_or_not_at_all(objects):
    """Braces, quotes, commas and backslashes inside texts included."""
    found = cut(objects)
    if found is None:
        return
    usual = all(
        not isinstance(item.get(name), dict if kind is None else str)
        for item in objects
        for name, kind in FIELDS.items()
    )
    assert usual
    assert {name: array.to_pylist() for name, array in found.items()} == expected(objects)


def test_a_chunk_of_nothing_is_left_to_a_parser():
    """There is no line to take apart."""
    assert grid().cut(pa.array([], pa.binary())) is None
