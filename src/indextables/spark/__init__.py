"""Everything that needs PySpark; importing it without PySpark raises an error that says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from indextables.errors import MissingPackageError

# PySpark does not bring pandas, and its mapInArrow, on which every job of ours runs, does not work without.
_missing = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
if _missing:
    raise MissingPackageError(
        f"IndexTables needs {' and '.join(_missing)} to work with Spark, not installed in this Python; "
        'install with: pip install "indextables[spark]"',
        packages=_missing,
    )
