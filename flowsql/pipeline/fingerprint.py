"""Fingerprints of what the rows of a node hang on, one for each kind of cause, so that a change can be named."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from flowsql.pipeline.order import stored_reads
from flowsql.pipeline.project import Definition, Node, Project
from flowsql_connectors.filesystem.files import find_files
from flowsql_core.catalog import ANONYMOUS, CatalogTable, ObjectPath
from flowsql_core.errors import FlowSqlError
from flowsql_core.secrets.placeholders import filled
from flowsql_grammar import ast
from flowsql_grammar.printer import print_sql
from flowsql_planner.catalog.manager import CatalogManager

#: What is said of a node whose fingerprint of a kind is another one.
CHANGES: Final = {
    "statement": "its statement changed",
    "definitions": "a definition that it uses changed",
    "settings": "its settings changed",
    "inputs": "files that it reads changed",
}
#: Options that change how fast a job is, when it stops, what it starts from, or what is printed, and never its rows.
_WITHOUT_EFFECT: Final = (
    "execution.batch.engine", "execution.batch.local-threshold", "execution.buffer-timeout", "execution.checkpointing.",
    "execution.state-recovery.", "flowsql.memory", "flowsql.network.", "flowsql.print.", "flowsql.source.batch-rows",
    "flowsql.state-recovery.", "flowsql.trigger", "io.tmp.dirs", "jobmanager.", "metrics.", "parallelism.default",
    "pipeline.max-parallelism", "pipeline.name", "python.execution-mode", "python.fn-execution.", "restart-strategy.",
    "s3.", "spark.", "sql-client.", "state.backend.", "state.checkpoints.", "state.savepoints.", "table.dml-sync",
    "table.exec.resource.", "taskmanager.",
)  # fmt: skip


def fingerprints(project: Project, node: Node, catalogs: CatalogManager) -> dict[str, str]:
    """By the kinds of :data:`CHANGES`. ``catalogs``: with all definitions of the project."""
    settings = (f"{key}={value}" for key, value in sorted(node.settings.items()) if not key.startswith(_WITHOUT_EFFECT))
    return {
        "statement": _hashed([print_sql(node.statement)]),
        "definitions": _hashed(_definitions(project, node)),
        "settings": _hashed(settings),
        "inputs": _hashed(_inputs(project, node, catalogs)),
    }


def _hashed(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _definitions(project: Project, node: Node) -> list[str]:
    """Texts of all definitions that the node uses, however far away; of a Python function its module, too."""
    tables, functions = project.tables, project.functions
    found: dict[int, Definition] = {}
    waiting = [*node.reads, *node.tables]
    names = set(node.calls)
    while waiting or names:
        definition = tables.get(waiting.pop()) if waiting else functions.get(names.pop())
        if definition is None or id(definition) in found:
            continue
        found[id(definition)] = definition
        if definition.statement is not node.statement:
            names |= definition.calls
            # Who reads the table of a CREATE TABLE AS runs behind it, whatever that reads.
            if not (isinstance(definition.statement, ast.CreateTable) and definition.statement.query is not None):
                waiting += definition.reads
    return sorted(text for each in found.values() for text in _definition(each))


def _definition(each: Definition) -> list[str]:
    texts = [print_sql(each.statement)]
    if isinstance(each.statement, ast.CreateFunction):
        module, _, _ = each.statement.class_name.rpartition(".")
        try:
            spec = importlib.util.find_spec(module) if module else None
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            texts.append(hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest())
    return texts


def _inputs(project: Project, node: Node, catalogs: CatalogManager) -> list[str]:
    """Paths, sizes and times of the files of tables that no node writes."""
    written = {path for other in project.nodes for path in other.tables}
    return [
        text
        for path in sorted(stored_reads(project, node), key=str)
        if path not in written
        for text in _files(path, catalogs, node.settings)
    ]


def _files(path: ObjectPath, catalogs: CatalogManager, settings: Mapping[str, str]) -> list[str]:
    if path.catalog == ANONYMOUS:
        return _found(os.path.expanduser(path.name), settings)
    found = catalogs.lookup(path)
    if found is None or not isinstance(found.value, CatalogTable):
        return []
    location = dict(found.value.options).get("path")
    return [] if location is None else _found(filled(location), settings)


def _found(location: str, settings: Mapping[str, str]) -> list[str]:
    try:
        return [f"{file.path} {file.size} {file.modified_ms}" for file in find_files(location, settings=settings)]
    except FlowSqlError:
        # What cannot be read will be said when it is read.
        return [f"{location} is not there"]
