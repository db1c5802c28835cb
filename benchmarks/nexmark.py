"""Nexmark by the suite beside the checkout: FlowSQL alone, or with Flink where ``FLINK_PYTHON`` is set.

``--apart`` runs the engines of each query one after the other, each alone on the machine, and prints ratios: a JVM that
stands beside another process slows it, and a machine's speed changes over the half hour that all queries take.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT.parent / "shared" / "nexmark"
#: Events of a run, fewer where each costs more.
EVENTS = "5000000," + ",".join(
    [f"{query}=1000000" for query in ("q4", "q6", "q7", "q9", "q18", "q19", "q20", "q23")]
    + ["q15=2500000", "q16=500000"]
)


def supported() -> list[str]:
    """Queries that FlowSQL answers as Flink does."""
    listed = (ROOT / "tests" / "nexmark" / "passing.txt").read_text().split()
    return sorted(listed, key=lambda query: int(query[1:]))


def suite(*options: str) -> list[str]:
    flowsql = Path(sys.executable).with_name("flowsql")
    template = f"{flowsql} TUNED -D parallelism.default=PARTS -f FILE"
    script = str(SUITE / "side_by_side.py")
    return [
        sys.executable, script, "--command", template, "--command-parts", "2", "--parallelism", "2", *options,
    ]  # fmt: skip


def measured(query: str, options: Sequence[str]) -> dict[str, Any]:
    """What the suite measures of the only party that options leave."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "measured.json")
        words = suite("--queries", query, *options, "--json", str(out))
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(out.read_text())["queries"][query]
    [party] = [name for name in found if name != "events"]
    if "error" in found[party]:
        raise SystemExit(f"{query}: {found[party]['error']}")
    return {"events": found["events"], **found[party]}


def apart(queries: Sequence[str], events: str, repeat: int, out: Path | None) -> None:
    """Print, of each query, Flink's figures divided by FlowSQL's, and their geometric means."""
    keys = ("wall_s", "further_s", "cpu_s", "further_cpu_s", "peak_rss_mib")
    print("query | events | whole job | further event | CPU time | of a further event | memory", flush=True)
    ratios: dict[str, list[float]] = {key: [] for key in keys}
    kept = {}
    for query in queries:
        both = []
        for party in (
            ("--only", "command", "--repeat", "3"),
            ("--only", "flink", "--repeat", str(repeat), "--warm-full"),
        ):
            figures = measured(query, ["--events", events, *party])
            figures["further_s"] = 1 / (figures["marginal_events_per_s"] or math.inf)
            figures["further_cpu_s"] = figures["cpu_s_per_million_marginal"]
            both.append(figures)
        own, flink = both
        kept[query] = {"flowsql": own, "flink": flink}
        row = [flink[key] / own[key] if own[key] > 0 < flink[key] else math.nan for key in keys]
        for key, ratio in zip(keys, row, strict=True):
            ratios[key].append(ratio)
        memory = own["peak_rss_mib"] / flink["peak_rss_mib"]
        cells = [f"{ratio:.1f}" for ratio in row[:-1]]
        print(" | ".join([query, f"{own['events']:,}", *cells, f"{memory:.2f}"]), flush=True)
        if out is not None:
            out.write_text(json.dumps(kept, indent=1))
    means = [f"{math.exp(math.fsum(map(math.log, ratios[key])) / len(queries)):.1f}" for key in keys[:-1]]
    print("geometric mean | | " + " | ".join(means))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--apart", action="store_true", help="each engine alone on the machine, query by query")
    parser.add_argument("--queries", default=",".join(supported()), help="of --apart")
    parser.add_argument("--events", default=EVENTS, help="of --apart: N, or N with exceptions: 1000000,q15=300000")
    parser.add_argument("--repeat", type=int, default=1, help="of --apart: runs of Flink; FlowSQL runs three times")
    parser.add_argument("--json", type=Path, help="of --apart")
    parser.add_argument("rest", nargs="*", help="options for side_by_side.py, behind --")
    arguments = parser.parse_args()
    if not SUITE.is_dir():
        print(f"Nexmark: skipped, there is no {SUITE}")
        return 0
    if arguments.apart:
        if "FLINK_PYTHON" not in os.environ:
            parser.error("--apart needs FLINK_PYTHON, a Python that has apache-flink")
        apart(arguments.queries.split(","), arguments.events, arguments.repeat, arguments.json)
        return 0
    options = arguments.rest or ["--events", EVENTS, "--queries", ",".join(supported())]
    if "FLINK_PYTHON" not in os.environ:
        options = ["--only", "command", *options]
    return subprocess.run(suite(*options), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
