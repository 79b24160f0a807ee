"""Small splits are indexed anew when they are merged; tests of merging indexes ask for it at any size.

Use it as a fixture: `from support.index_merging import indexes_of_any_size  # noqa: F401`. It holds for the
whole module.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from indextables.ops.rewrite import rows


@pytest.fixture(autouse=True, scope="module")
def indexes_of_any_size() -> Iterator[None]:
    """Merge the indexes of small splits too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "REINDEX_BELOW_BYTES", 0)
        yield
