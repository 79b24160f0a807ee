"""The marks of the Java sources: one source, and what each version of Spark is given of it."""

from __future__ import annotations

import pytest

from indextables.spark.jvm.sources import resolved, sources, sources_for

MARKED = """\
import org.apache.spark.New; // since 4.1
class Some {
  // since 4.0
  scala.collection.immutable.Seq both(org.apache.spark.sql.classic.Dataset data) { return a; }
  // end
  // until 4.0
  scala.collection.immutable.Seq both(org.apache.spark.sql.classic.Dataset data) { return b; }
  // end
  int count = 1; // until 4.1
}
"""


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (
            (3, 5),
            {
                2: "class Some {",
                7: "  scala.collection.Seq both(org.apache.spark.sql.Dataset data) { return b; }",
                9: "  int count = 1;",
            },
        ),
        (
            (4, 0),
            {
                2: "class Some {",
                4: "  scala.collection.immutable.Seq both(org.apache.spark.sql.classic.Dataset data) { return a; }",
                9: "  int count = 1;",
            },
        ),
        (
            (4, 10),
            {
                1: "import org.apache.spark.New;",
                2: "class Some {",
                4: "  scala.collection.immutable.Seq both(org.apache.spark.sql.classic.Dataset data) { return a; }",
            },
        ),
    ],
)
def test_a_version_of_spark_is_given_its_own_lines_at_their_numbers(line, kept):
    lines = resolved(MARKED, line).splitlines()
    assert {number: text for number, text in enumerate(lines, 1) if text} == {**kept, 10: "}"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  // since 4.1\n  int a;\n", "has no // end"),
        ("  // since 4.1\n  // until 4.2\n  // end\n", "line 2: a mark inside of another"),
        ("  // Since 4.1\n  // end\n", "line 2: '// end' is no mark"),
        ("  int a; // since 4\n", "line 1: 'int a; // since 4' is no mark"),
        ("  int a; //until 4.1\n", "is no mark"),
    ],
)
def test_a_mark_that_would_have_no_effect_is_an_error(text, problem):
    with pytest.raises(ValueError, match=problem):
        resolved(text, (4, 3), "Some.java")


def test_what_a_spark_has_no_names_for_is_left_out_of_its_sources():
    older, newer = sources_for("4.1.0"), sources_for("4.3.0")
    assert "TableInfo info, Table source" in newer["Catalog.java"]
    assert "TableInfo info, Table source" not in older["Catalog.java"]
    assert older["Bridge.java"] == newer["Bridge.java"]
    for name, text in sources_for("3.5.0").items():
        assert "classic." not in text, name
        assert "immutable.Seq" not in text, name
        assert text.count("\n") == sources()[name].count("\n"), name
