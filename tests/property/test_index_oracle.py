"""The index by itself finds exactly the rows that the meaning of a query says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.indexes import Indexed
from support.search_cases import cases, settings_of, table_of
from support.search_oracle import found


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["position", "freq", "basic"]))
def test_the_index_finds_what_the_query_means(case, record):
    """Every tokenizer; phrases, slop, prefixes, ranges, stems, long words, CJK and arrays; any record option."""
    rows, lists, asked = case
    indexed = Indexed(table_of(rows, lists), settings_of(record))
    for query in asked:
        for _ in range(3):  # the second and third time words are kept, and other ways are taken
            assert indexed.hits(str(query)) == found(query, len(rows)), str(query)
