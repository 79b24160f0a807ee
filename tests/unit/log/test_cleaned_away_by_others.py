"""What was newest a moment ago may be gone: whoever asks for the newest version gets it all the same."""

import subprocess
import sys

from support.upkeep import StandIn

_OTHER_PROCESS = """
import sys
import indextables as it
from indextables.ops.upkeep.truncate_history import run_truncate
log = it.TransactionLog.open(sys.argv[1], {"checkpoint.interval": 1000})
for n in range(30):
    log.add_files([it.AddAction(path=f"{n}.split", size=1)])
run_truncate(log)
"""


def test_files_are_listed_after_another_process_truncated_history(tmp_path):
    """F3: a handle may believe 'nothing newer' for some seconds, and never fails for it."""
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    table.log.checkpoint()
    reader = table.handle()
    assert reader.latest_version() == 1
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, str(table.root)], check=True)
    assert len(reader.list_files()) == 31
