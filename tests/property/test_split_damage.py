"""Damage of every kind: a flipped bit anywhere or a cut never gives a wrong answer and never ends the process."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from indextables.errors import DamagedSplitError, Error, SplitError
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits, open_split
from support.splits import build_split, flip, index_bytes, row_map_bytes

ROWS = 3000
QUERIES = [
    "error",
    '"connection reset"',
    "conn*",
    "message:[c TO d]",
    "-error",
    "level:WARN AND 7*",
    "tags:db",
]


@pytest.fixture(scope="module")
def rows():
    dice = random.Random(3)
    words = ["error", "connection", "reset", "by", "peer", "after", "timeout", "naïve", "日本語", "ok"]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "message": [
                " ".join(dice.choices(words, k=6)) + f" {at}" if at % 17 else None for at in range(ROWS)
            ],
            "level": dice.choices(["INFO", "WARN", "ERROR"], k=ROWS),
            "tags": [dice.choices(["db", "web", "auth"], k=at % 3) for at in range(ROWS)],
            "value": [dice.random() for _ in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory, rows):
    options = {
        "indexing.typemap.message": "text",
        "indexing.typemap.level": "string",
        "indexing.typemap.tags": "text",
    }
    return build_split(tmp_path_factory.mktemp("sound"), rows, options)


@pytest.fixture(scope="module")
def answers(sound):
    return {query: (sound.hits(query), sound.search(query)) for query in QUERIES}


def outcomes(built, answers, query):
    """The answer of a damaged split: right, or an error of ours that names the file."""
    expected, table = answers[query]
    try:
        found = built.hits(query)
        rows = built.search(query)
    except Error as error:
        assert isinstance(error, SplitError), error
        assert built.path.name in str(error)
        return "error"
    assert found == expected
    assert rows.equals(table)
    return "right"


def damaged_copy(sound, directory, offset, bit):
    forget_splits()
    copy = sound.copy(directory)
    flip(copy.path, offset, bit)
    return copy


@pytest.mark.slow
def test_flips_in_the_index_leave_every_answer_right(sound, answers, tmp_path):
    """250 flips: the index is found damaged, the rows are scanned instead."""
    dice = random.Random(11)
    ranges = index_bytes(sound)
    noticed = 0
    for at in range(250):
        offset, length = dice.choice(ranges)
        copy = damaged_copy(sound, tmp_path / str(at), offset + dice.randrange(length), dice.randrange(8))
        note = []
        query = QUERIES[at % len(QUERIES)]
        assert copy.hits(query, note) == answers[query][0]
        # A query reads only the pieces it needs: damage elsewhere is not its concern.
        assert (note[0].by_index, note[0].scanned, note[0].damaged) in {(0, 1, 1), (1, 0, 0)}
        noticed += note[0].damaged
        assert outcomes(copy, answers, query) == "right"
    assert noticed > 20


@pytest.mark.slow
def test_flips_in_data_pages_are_noticed_or_do_not_matter(sound, answers, tmp_path):
    """150 flips among the pages, headers included: never another row than the one written."""
    dice = random.Random(12)
    end = sound.manifest.offset
    seen = set()
    for at in range(150):
        copy = damaged_copy(sound, tmp_path / str(at), dice.randrange(4, end), dice.randrange(8))
        seen.add(outcomes(copy, answers, QUERIES[at % len(QUERIES)]))
        forget_splits()
        try:
            reader = open_split(copy.store, copy.ref)
            whole = pa.concat_tables([part for _, part in reader.scan(copy.schema.names)])
        except SplitError:
            continue
        assert whole.equals(answers_table(sound))
    assert "error" in seen


_whole = {}


def answers_table(sound):
    if "table" not in _whole:
        reader = open_split(sound.store, sound.ref)
        _whole["table"] = pa.concat_tables([part for _, part in reader.scan(sound.schema.names)])
    return _whole["table"]


@pytest.mark.slow
def test_flips_in_the_footer_concern_only_who_reads_it(sound, answers, tmp_path):
    """100 flips behind the row map: searches do without the footer, and whoever needs it notices."""
    dice = random.Random(13)
    start = sound.add.footer_start_offset
    for at in range(100):
        copy = damaged_copy(
            sound, tmp_path / str(at), dice.randrange(start, sound.add.size), dice.randrange(8)
        )
        assert outcomes(copy, answers, QUERIES[at % len(QUERIES)]) == "right"
        forget_splits()
        with pytest.raises(SplitError):
            open_split(copy.store, SplitRef(copy.add.path))


@pytest.mark.slow
def test_flips_in_the_row_map_fall_back_to_parquets_own_checks(sound, answers, tmp_path):
    """Without the row map rows are read by pyarrow alone."""
    dice = random.Random(14)
    offset, length = row_map_bytes(sound)
    for at in range(30):
        copy = damaged_copy(sound, tmp_path / str(at), offset + dice.randrange(length), dice.randrange(8))
        assert outcomes(copy, answers, QUERIES[at % len(QUERIES)]) == "right"


@pytest.mark.parametrize("keep", [0, 3, 11, 12, 100, 0.3, 0.6, 0.9, 0.999, -1])
def test_a_truncated_split_is_an_error_that_names_it(sound, answers, tmp_path, keep):
    """Cut anywhere: a named error, from the search and from the scan alike."""
    forget_splits()
    copy = sound.copy(tmp_path)
    size = copy.path.stat().st_size
    left = size - 1 if keep == -1 else int(size * keep) if isinstance(keep, float) else keep
    with copy.path.open("r+b") as file:
        file.truncate(left)
    if left >= sound.add.footer_start_offset:
        # What a search reads is all there; only the footer is not.
        assert outcomes(copy, answers, QUERIES[0]) == "right"
        return
    for query in QUERIES[:2]:
        with pytest.raises(DamagedSplitError, match=copy.path.name):
            copy.hits(query)
    with pytest.raises(DamagedSplitError, match=copy.path.name):
        open_split(copy.store, copy.ref)


def test_bytes_at_the_end_of_a_split_are_noticed(sound, tmp_path):
    """A file that grew is not the file that was written; the size in the log decides."""
    forget_splits()
    copy = sound.copy(tmp_path)
    with copy.path.open("ab") as file:
        file.write(b"more")
    assert copy.hits("error") == sound.hits("error")
