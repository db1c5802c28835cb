"""Tasks that restore at the same time read how stores were made, each for itself."""

from __future__ import annotations

import subprocess
import sys

# Needs a process of its own: Python keeps its table for decoding once it is filled. The alphabet is given out slowly,
# so that a table which is filled by the first task would be read half filled by the second one.
PROGRAM = """
import base64, threading, time
import pyarrow as pa
from flowsql_runtime.state.rocksdb.store_calls import _plain, _revived

class Slow(bytes):
    def __iter__(self):
        for one in bytes(self):
            time.sleep(0.002)
            yield one

base64._b85alphabet = Slow(base64.b85encode.__globals__["_b85alphabet"])
text = _plain(pa.list_(pa.int64()), ())
read = []
tasks = [threading.Thread(target=lambda: read.append(_revived(text, ()))) for _ in range(4)]
for task in tasks:
    task.start()
    time.sleep(0.01)
for task in tasks:
    task.join()
print(read == [pa.list_(pa.int64())] * 4)
"""


def test_tasks_that_restore_at_the_same_time_read_the_same_types() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True\n", done.stderr
