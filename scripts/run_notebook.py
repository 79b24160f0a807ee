"""Run the example notebook again and keep what it shows: `python scripts/run_notebook.py`.

It runs in an empty directory, whose place is not kept: the notebook says /data instead.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first-hour.ipynb"
PLACE = "/data"


def executed(path: Path = NOTEBOOK) -> Any:
    """The notebook with the outputs of a run in a directory of its own; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as place:
        settings = {"metadata": {"path": place}}
        NotebookClient(notebook, timeout=300, record_timing=False, resources=settings).execute()
        text = json.dumps(notebook).replace(place, PLACE)
    return nbformat.from_dict(json.loads(text))


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
