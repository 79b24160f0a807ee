"""The short chain of statements in a session of its own: `python run_statements.py`.

Needs nothing but the installed package, so that it runs in an environment that holds the
oldest Spark that is promised. Ends with an error that names what was wrong.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import indextables as it
from support.core_statements import CORE
from support.statement_places import Place, wrong


def main() -> None:
    """Run the statements in the session catalog, in a catalog of directories and by path."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as directory:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2")
        builder = builder.config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        spark = it.connect(it.configure(builder).getOrCreate())
        spark.conf.set("spark.sql.catalog.lake", "io.indextables.DirectoryCatalog")
        spark.conf.set("spark.sql.catalog.lake.warehouse", f"{directory}/lake")

        def run(sql: str) -> list[tuple[object, ...]]:
            return [tuple(row) for row in spark.sql(sql).collect()]

        places = (Place("", Path(directory, "warehouse")), Place("lake.", Path(directory, "lake")))
        for place in (*places, Place(None, Path(directory, "paths"))):
            found = wrong(run, place, CORE, spark.version)
            if found:
                sys.exit("\n".join(found))
            sys.stdout.write(
                f"  {len(CORE)} statements on Spark {spark.version}: {place.prefix or place.base.name}\n"
            )
        spark.stop()


if __name__ == "__main__":
    main()
