"""``flowsql`` with a place where it kills itself: ``python start.py WORDS ...``, ``CHAOS_POINT=name:number``.

The places are those of the recovery harness (``../recovery/points.py``), and the writes of records.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recovery"))

import points

from flowsql.pipeline import kept
from flowsql_runtime.checkpoint import continuation, resume_folder

#: Point -> as in ``points.POINTS``.
RECORDS: Final[dict[str, tuple[Any, str, str]]] = {
    "before-record": (resume_folder, "replace_durably", "before"),
    "after-record": (resume_folder, "replace_durably", "after"),
    "before-a-snapshot-is-noted": (continuation.Continuation, "before_commit", "before"),
    "before-the-end-is-noted": (continuation.Continuation, "finish", "before"),
    "after-the-end-is-noted": (continuation.Continuation, "finish", "after"),
}
#: What a process may come by without a checkpoint of its own.
ALWAYS: Final = ("before-record", "after-record")


def arm() -> None:
    """Arm the point that the environment names."""
    points.POINTS.update(RECORDS)
    for name, (_, attribute, when) in RECORDS.items():
        if attribute == "replace_durably":
            points.ELSEWHERE[name] = (kept, attribute, when)
    points.OF_THE_END = (*points.OF_THE_END, *ALWAYS)  # type: ignore[misc]
    points.install(os.environ["CHAOS_POINT"])


if __name__ == "__main__":
    if os.environ.get("CHAOS_POINT"):
        arm()
    from flowsql.cli.main import main

    sys.exit(main(sys.argv[1:]))
