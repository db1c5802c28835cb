"""Write down the options of Apache Flink: ``python docs/make_flink_options.py FOLDER_OF_PYFLINK``.

The folder is that of an installed ``apache-flink`` (``site-packages/pyflink``). ``docs/FlinkOptions.java`` asks its
jars, which takes a Java of version 11 or newer. Two files are made: ``flowsql/options/flink.tsv``, the options, and
``grammar/flowsql_core/deprecated_keys.py``, their old names. Run ``docs/make_options.py`` afterwards.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "flowsql" / "options" / "flink.tsv"
OLD_KEYS = ROOT / "grammar" / "flowsql_core" / "deprecated_keys.py"

#: The planner hides in a jar within this jar.
PLANNER_LOADER = "flink-table-planner-loader"

#: Options of tables, formats, catalogs and hints, which stand in WITH clauses, and what Flink's parts tell each other.
NOT_OF_SESSIONS = re.compile(
    r"Internal|StreamConfig$|LookupOptions|LookupJoinHint|AsyncSinkConnector|MLPredict|VectorSearch|"
    r"(FileSystemConnector|PrintConnector|DataGenConnector|PythonDynamicTable|ArrowTableSource|LegacyCsv\w+)Options|"
    r"FormatOptions|Common(Catalog|Secret|Module)Options|(GenericInMemoryCatalogFactory|FileCatalogStoreFactory)Options"
)
NOT_KEYS = re.compile(r"\$internal|python\.internal\.|partition\.fields\.#")

#: Defaults that depend on the machine, or that say "no limit".
DEFAULTS = {"/tmp": "", "9223372036854775807 bytes": ""}
TYPES = {"MemorySize": "memory"}
MEANING = 220


def asked(pyflink: Path) -> list[list[str]]:
    """What the jars answer: fields of each line."""
    jars = sorted([*pyflink.glob("lib/*.jar"), *pyflink.glob("opt/*.jar")])
    with tempfile.TemporaryDirectory() as folder:
        for jar in [jar for jar in jars if jar.name.startswith(PLANNER_LOADER)]:
            with zipfile.ZipFile(jar) as archive:
                jars.append(Path(archive.extract("flink-table-planner.jar", folder)))
        names = [str(jar) for jar in jars]
        command = ["java", "-cp", ":".join(names), str(ROOT / "docs" / "FlinkOptions.java"), *names]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split("\t") for line in answer.splitlines()]


def first_sentence(description: str) -> str:
    """The first sentence of a description, without markup, at most ``MEANING`` characters."""
    line = next(filter(None, (line.strip() for line in description.split("<br />"))), "")
    text = html.unescape(re.sub(r"<[^>]+>", " ", line))
    text = re.sub(r"\s+([.,;:)])", r"\1", re.sub(r"\s+", " ", text)).replace("( ", "(").strip()
    text = re.sub(r"(?<=[a-z])\.(?=[A-Z][a-z]+ )", ". ", text)
    sentence = re.split(r"(?<=[^.][.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[A-Z\"'])", text, maxsplit=1)[0]
    return sentence if len(sentence) <= MEANING else sentence[: MEANING - 3].rsplit(" ", 1)[0] + "..."


def options(pyflink: Path) -> dict[str, tuple[str, str, str, str, str]]:
    """Type, values, default, old keys and meaning of each key."""
    found = {}
    for class_name, key, kind, values, default, old, description in asked(pyflink):
        simple = class_name.rpartition(".")[2]
        if NOT_OF_SESSIONS.search(simple) or NOT_KEYS.match(key):
            continue
        kind = TYPES.get(kind, kind.lower())
        found[key] = (kind, values, DEFAULTS.get(default, default), old, first_sentence(description))
    return dict(sorted(found.items()))


def old_keys(table: dict[str, tuple[str, str, str, str, str]]) -> dict[str, str]:
    """New keys by old ones. A key that is an option still is not old; of several new keys the shortest counts."""
    candidates: dict[str, list[str]] = {}
    for key, (_, _, _, old, _) in table.items():
        for name in filter(None, old.split(",")):
            if name not in table:
                candidates.setdefault(name, []).append(key)
    return {old: min(new, key=lambda key: (len(key), key)) for old, new in sorted(candidates.items())}


def render_old_keys(table: dict[str, tuple[str, str, str, str, str]]) -> str:
    """The module."""
    rows = "".join(f'    "{old}": "{new}",\n' for old, new in old_keys(table).items())
    return f'''"""Flink's old keys of options, and what they are read as. Written by ``docs/make_flink_options.py``."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Final

DEPRECATED_KEYS: Final = {{
{rows}}}
'''


if __name__ == "__main__":
    made = options(Path(sys.argv[1]))
    header = "key\ttype\tvalues\tdefault\told keys\tmeaning\n"
    TABLE.write_text(header + "".join("\t".join((key, *rest)) + "\n" for key, rest in made.items()), encoding="utf-8")
    OLD_KEYS.write_text(render_old_keys(made), encoding="utf-8")
    print(f"{len(made)} options of Flink")
