"""Whatever text arrives, the parser answers with a command or a CommandError, and with nothing else."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import CommandError
from indextables.sql.commands.grammar import is_command, parse_command, shared_subject

STATEMENTS = [
    "REPAIR INDEXFILES TRANSACTION LOG '/a/_transaction_log' AT LOCATION '/b' FROM SPLITS",
    "MERGE SPLITS '/t' WHERE day = '2024-01-01' TARGET SIZE 100M MAX DEST SPLITS 5 DRY RUN",
    "PURGE INDEXTABLE `v` OLDER THAN 14 DAYS TRANSACTION LOG RETENTION 30 DAYS DRY RUN;",
    "DROP INDEXTABLES PARTITIONS FROM db.v WHERE year = 2023 AND (month > 6 OR x IN (1.5, 2e9))",
    'COMPACT INDEXTABLES "/t" -- comment',
    "TRUNCATE INDEXTABLES TIME TRAVEL '/t' DRY RUN",
    "DESCRIBE INDEXTABLES TRANSACTION LOG '/t' INCLUDE ALL",
    "DESCRIBE INDEXTABLES DATA SKIPPING STATS",
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR '/t'",
    "RESTORE INDEXTABLES '/t' TO VERSION 12 /* why /* nested */ */",
    "DELETE FROM INDEXTABLES '/t' WHERE name LIKE 'a''b%'",
    "OPTIMIZE db.v WHERE day = '2024-01-01' DRY RUN",
    "VACUUM '/t' RETAIN 168 HOURS DRY RUN",
    "DESCRIBE HISTORY `v` LIMIT 5",
    "RESTORE TABLE indextables.`/t` TO TIMESTAMP AS OF '2024-01-01'",
    "SHOW PARTITIONS '/t'",
    "ANALYZE TABLE v COMPUTE STATISTICS",
    "CREATE INDEX IF NOT EXISTS words ON TABLE '/t' USING search (a, b) OPTIONS (indexing.typemap.a = 'text')",
    "REFRESH INDEX words ON db.v",
    "SHOW INDEXES FROM '/t'",
    "PREWARM INDEXTABLES CACHE '/t' FOR SEGMENTS (TERM_DICT)",
]
VOCABULARY = sorted({word for statement in STATEMENTS for word in statement.split()})
NOISE = [
    "'",
    '"',
    "`",
    "--",
    "/*",
    "*/",
    ";",
    "\n",
    "\0",
    "é",
    "𝔘",
    "\ud800",
    "9" * 50,
    "-1",
    "\\",
    "",
    "(",
    "..",
]


def answers_cleanly(text: str) -> None:
    claimed = is_command(text)
    assert isinstance(claimed, bool)
    ours = claimed or shared_subject(text) is not None
    try:
        parse_command(text)
    except CommandError as error:
        assert error.line >= 1
        assert error.column >= 1
    else:
        assert ours, "a statement that parses must be recognised as ours"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_random_text_is_a_command_error(text):
    answers_cleanly(text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(VOCABULARY + NOISE), max_size=25).map(" ".join))
def test_random_sequences_of_the_right_words_are_answered_cleanly(text):
    answers_cleanly(text)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_mutations_of_real_statements_are_answered_cleanly(statement):
    rng = random.Random(statement)
    for _ in range(300):
        text = list(statement)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            match rng.randrange(4):
                case 0:
                    del text[at : at + rng.randint(1, 6)]
                case 1:
                    text.insert(at, rng.choice(NOISE))
                case 2:
                    text.insert(at, rng.choice(VOCABULARY))
                case _:
                    cut = rng.randrange(len(text) + 1)
                    text[at:at] = text[min(at, cut) : max(at, cut)]
        answers_cleanly("".join(text))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_prefix_is_answered_cleanly(statement):
    for end in range(len(statement)):
        answers_cleanly(statement[:end])


def test_a_very_long_statement_is_answered_cleanly():
    condition = " OR ".join(f"id = {i}" for i in range(20_000))
    assert parse_command(f"DELETE FROM INDEXTABLES '/t' WHERE {condition}").where == condition
    answers_cleanly("MERGE SPLITS t " + "(" * 50_000)
