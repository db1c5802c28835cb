"""CREATE, ALTER, DROP and ANALYZE as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from flowsql_grammar import ast
from flowsql_grammar.printing.names import name, names, path, string, words
from flowsql_grammar.printing.query import QueryPrinter


class DdlPrinter(QueryPrinter):
    """Statements that define objects."""

    def ddl(self, node: ast.DdlStatement) -> str:
        """Any of them."""
        match node:
            case ast.CreateTable():
                return words(
                    "CREATE OR REPLACE" if node.replace else "CREATE",
                    "TEMPORARY TABLE" if node.temporary else "TABLE",
                    _if_not_exists(node.if_not_exists),
                    path(node.name),
                    self._table_body(node),
                    self._like(node.like) if node.like else None,
                    "AS " + self.query(node.query) if node.query else None,
                )
            case ast.CreateMaterializedTable():
                return words(
                    "CREATE OR ALTER MATERIALIZED TABLE" if node.or_alter else "CREATE MATERIALIZED TABLE",
                    path(node.name),
                    self._table_body(node),
                    self._start_mode(node.start_mode) if node.start_mode else None,
                    "FRESHNESS = " + self.expression(node.freshness) if node.freshness else None,
                    "REFRESH_MODE = " + node.refresh_mode.value if node.refresh_mode else None,
                    "AS " + self.query(node.query),
                )
            case ast.CreateView():
                return words(
                    "CREATE OR REPLACE" if node.replace else "CREATE",
                    "TEMPORARY VIEW" if node.temporary else "VIEW",
                    _if_not_exists(node.if_not_exists),
                    path(node.name),
                    names(node.columns) if node.columns else None,
                    comment(node.comment),
                    "AS " + self.query(node.query),
                )
            case ast.CreateFunction():
                resources = ", ".join(f"{r.kind.value} {string(r.path)}" for r in node.resources)
                return words(
                    "CREATE OR REPLACE" if node.replace else "CREATE",
                    _scope(node.temporary, node.system),
                    "FUNCTION",
                    _if_not_exists(node.if_not_exists),
                    path(node.name),
                    "AS " + string(node.class_name),
                    "LANGUAGE " + node.language.value if node.language else None,
                    "USING " + resources if resources else None,
                    with_options(node.options),
                )
            case ast.CreateCatalog(catalog, options, note, if_not_exists, replace):
                exists = _if_not_exists(if_not_exists)
                return words(
                    "CREATE OR REPLACE CATALOG" if replace else "CREATE CATALOG",
                    exists,
                    name(catalog),
                    comment(note),
                    with_options(options),
                )
            case ast.CreateDatabase(database, options, note, if_not_exists, replace):
                exists = _if_not_exists(if_not_exists)
                return words(
                    "CREATE OR REPLACE DATABASE" if replace else "CREATE DATABASE",
                    exists,
                    path(database),
                    comment(note),
                    with_options(options),
                )
            case ast.CreateModel():
                return words(
                    "CREATE OR REPLACE" if node.replace else "CREATE",
                    _scope(node.temporary, False),
                    "MODEL",
                    _if_not_exists(node.if_not_exists),
                    path(node.name),
                    f"INPUT ({', '.join(self.column(c) for c in node.inputs)})" if node.inputs else None,
                    f"OUTPUT ({', '.join(self.column(c) for c in node.outputs)})" if node.outputs else None,
                    comment(node.comment),
                    with_options(node.options),
                    "AS " + self.query(node.query) if node.query else None,
                )
            case ast.CreateConnection():
                return words(
                    "CREATE OR REPLACE" if node.replace else "CREATE",
                    _scope(node.temporary, node.system),
                    "CONNECTION",
                    _if_not_exists(node.if_not_exists),
                    path(node.name),
                    comment(node.comment),
                    "WITH " + options_list(node.options),
                )
            case ast.Alter(kind, identifier, action, if_exists):
                exists = "IF EXISTS" if if_exists else ""
                return words("ALTER", kind.value, exists, path(identifier), self._action(action))
            case ast.AlterFunction():
                return words(
                    "ALTER",
                    _scope(node.temporary, node.system),
                    "FUNCTION",
                    "IF EXISTS" if node.if_exists else None,
                    path(node.name),
                    "AS " + string(node.class_name),
                    "LANGUAGE " + node.language.value if node.language else None,
                )
            case ast.Drop():
                return words(
                    "DROP",
                    _scope(node.temporary, node.system),
                    node.kind.value,
                    "IF EXISTS" if node.if_exists else None,
                    path(node.name),
                    {None: None, True: "CASCADE", False: "RESTRICT"}[node.cascade],
                )
            case ast.AnalyzeTable():
                columns = ", ".join(name(column) for column in node.columns)
                return words(
                    "ANALYZE TABLE",
                    path(node.name),
                    self.partition(node.partition) if node.partition else None,
                    "COMPUTE STATISTICS",
                    "FOR COLUMNS " + columns if columns else None,
                    "FOR ALL COLUMNS" if node.all_columns else None,
                )
            case _:
                assert_never(node)

    def _table_body(self, node: ast.CreateTable | ast.CreateMaterializedTable) -> str:
        elements = [
            *(name(column) for column in node.column_names),
            *(self.column(column) for column in node.columns),
            *(self.constraint(constraint) for constraint in node.constraints),
            *(self.watermark(watermark) for watermark in node.watermarks),
        ]
        return words(
            f"({', '.join(elements)})" if elements else None,
            comment(node.comment),
            "DISTRIBUTED " + self._distribution(node.distribution) if node.distribution else None,
            "PARTITIONED BY " + names(node.partitioned_by) if node.partitioned_by else None,
            with_options(node.options),
        )

    def _start_mode(self, node: ast.StartMode) -> str:
        argument = f"({self.expression(node.argument)})" if node.argument else ""
        return f"START_MODE = {node.kind.value}{argument}"

    def _like(self, node: ast.TableLike) -> str:
        options = " ".join(f"{option.strategy.value} {option.feature.value}" for option in node.options)
        file = "FILE" if isinstance(node.source, ast.FileName) else None
        return words("LIKE", file, path(node.source), f"({options})" if options else None)

    def column(self, node: ast.Column) -> str:
        """A column of any kind."""
        match node:
            case ast.PhysicalColumn(identifier, type_, constraint, note):
                key = self.constraint(constraint) if constraint else None
                return words(path(identifier), self.type(type_), key, comment(note))
            case ast.ComputedColumn(identifier, expression, note):
                return words(path(identifier), "AS", self.expression(expression), comment(note))
            case ast.MetadataColumn(identifier, type_, key, virtual, note):
                source = f"FROM {string(key)}" if key is not None else None
                kind = words("METADATA", source, "VIRTUAL" if virtual else None)
                return words(path(identifier), self.type(type_), kind, comment(note))
            case _:
                assert_never(node)

    def constraint(self, node: ast.Constraint | ast.Expectation) -> str:
        """A key, or an expectation."""
        if isinstance(node, ast.Expectation):
            condition = self.expression(node.condition)
            return f"CONSTRAINT {name(node.name)} CHECK ({condition}) ON VIOLATION {node.action.value}"
        return words(
            "CONSTRAINT " + name(node.name) if node.name else None,
            node.kind.value,
            names(node.columns) if node.columns else None,
            {None: None, True: "ENFORCED", False: "NOT ENFORCED"}[node.enforced],
        )

    def watermark(self, node: ast.Watermark) -> str:
        """A watermark."""
        return f"WATERMARK FOR {path(node.column)} AS {self.expression(node.expression)}"

    def _distribution(self, node: ast.Distribution) -> str:
        kind = f"{node.kind.value} " if node.kind else ""
        return words(
            f"BY {kind}{names(node.columns)}" if node.columns else None,
            f"INTO {node.buckets} BUCKETS" if node.buckets is not None else None,
        )

    def partition(self, node: ast.PartitionSpec) -> str:
        """``PARTITION (...)`` with its options."""
        entries = ", ".join(
            name(e.name) + (f" = {self.expression(e.value)}" if e.value is not None else "") for e in node.entries
        )
        return words(f"PARTITION ({entries})", with_options(node.options))

    def _action(self, node: ast.AlterAction) -> str:
        match node:
            case ast.RenameObject(target):
                return f"RENAME TO {path(target)}"
            case ast.RenameColumn(column, target):
                return f"RENAME {path(column)} TO {path(target)}"
            case ast.SetOptions(options):
                return "SET " + options_list(options)
            case ast.ResetOptions(keys):
                return f"RESET ({', '.join(string(key) for key in keys)})"
            case ast.AddElements():
                return "ADD " + self._elements(node)
            case ast.ModifyElements():
                return "MODIFY " + self._elements(node)
            case ast.DropColumns(columns):
                return f"DROP ({', '.join(path(column) for column in columns)})"
            case ast.DropPrimaryKey():
                return "DROP PRIMARY KEY"
            case ast.DropConstraint(constraint):
                return f"DROP CONSTRAINT {name(constraint)}"
            case ast.DropWatermark():
                return "DROP WATERMARK"
            case ast.DropDistribution():
                return "DROP DISTRIBUTION"
            case ast.AddPartitions(partitions, if_not_exists):
                shown = " ".join(self.partition(partition) for partition in partitions)
                return words("ADD", _if_not_exists(if_not_exists), shown)
            case ast.DropPartitions(partitions, if_exists):
                shown = ", ".join(self.partition(partition) for partition in partitions)
                return words("DROP", "IF EXISTS" if if_exists else None, shown)
            case ast.SetComment(note):
                return f"COMMENT {string(note)}"
            case ast.SetQuery(query):
                return f"AS {self.query(query)}"
            case ast.SetFreshness(freshness):
                return f"SET FRESHNESS = {self.expression(freshness)}"
            case ast.SetRefreshMode(mode):
                return f"SET REFRESH_MODE = {mode.value}"
            case ast.Suspend():
                return "SUSPEND"
            case ast.Resume(options):
                return words("RESUME", with_options(options))
            case ast.Refresh(partition):
                return words("REFRESH", self.partition(partition) if partition else None)
            case _:
                assert_never(node)

    def _elements(self, node: ast.AddElements | ast.ModifyElements) -> str:
        if node.distribution is not None:
            return "DISTRIBUTION " + self._distribution(node.distribution)
        elements = [
            *(self._positioned(column) for column in node.columns),
            *(self.constraint(constraint) for constraint in node.constraints),
            *(self.watermark(watermark) for watermark in node.watermarks),
        ]
        return f"({', '.join(elements)})"

    def _positioned(self, node: ast.PositionedColumn) -> str:
        position = None
        if node.position is not None:
            position = "FIRST" if node.position.after is None else f"AFTER {path(node.position.after)}"
        return words(self.column(node.column), position)


def comment(text: str | None) -> str:
    """``COMMENT 'c'`` or nothing."""
    return f"COMMENT {string(text)}" if text is not None else ""


def options_list(options: Iterable[ast.Option]) -> str:
    """Options in brackets."""
    return "(" + ", ".join(f"{string(option.key)} = {string(option.value)}" for option in options) + ")"


def with_options(options: tuple[ast.Option, ...]) -> str:
    """``WITH (...)`` or nothing."""
    return "WITH " + options_list(options) if options else ""


def _if_not_exists(flag: bool) -> str:
    return "IF NOT EXISTS" if flag else ""


def _scope(temporary: bool, system: bool) -> str:
    return words("TEMPORARY" if temporary else None, "SYSTEM" if system else None)
