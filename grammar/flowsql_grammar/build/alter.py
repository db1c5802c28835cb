"""Statements that alter objects."""

from __future__ import annotations

from typing import TypeAlias

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast

_SchemaChange: TypeAlias = "ast.PositionedColumn | ast.Watermark | ast.Constraint | ast.Expectation | ast.Distribution"


class AlterBuilder:
    """Methods of the rules of ALTER."""

    def alter_object(self, span: Span, kind: str, name: ast.Identifier, action: ast.AlterAction) -> ast.Alter:
        """ALTER of an object that must exist."""
        return ast.Alter(ast.ObjectKind(kind), name, action, span=span)

    def alter_if_exists(
        self, span: Span, kind: str, if_exists: bool, name: ast.Identifier, action: ast.AlterAction
    ) -> ast.Alter:
        """ALTER with IF EXISTS."""
        return ast.Alter(ast.ObjectKind(kind), name, action, if_exists, span=span)

    def alter_function(
        self,
        span: Span,
        if_exists: bool,
        name: ast.Identifier,
        class_name: str,
        language: str | None,
        temporary: bool = False,
        system: bool = False,
    ) -> ast.AlterFunction:
        """ALTER FUNCTION."""
        kind = ast.FunctionLanguage(language) if language else None
        return ast.AlterFunction(name, class_name, kind, temporary, system, if_exists, span=span)

    def alter_temporary_function(
        self, span: Span, if_exists: bool, name: ast.Identifier, class_name: str, language: str | None
    ) -> ast.AlterFunction:
        """ALTER TEMPORARY FUNCTION."""
        return self.alter_function(span, if_exists, name, class_name, language, temporary=True)

    def alter_system_function(
        self, span: Span, if_exists: bool, name: ast.Identifier, class_name: str, language: str | None
    ) -> ast.AlterFunction:
        """ALTER TEMPORARY SYSTEM FUNCTION."""
        return self.alter_function(span, if_exists, name, class_name, language, temporary=True, system=True)

    def rename_object(self, span: Span, name: ast.Identifier) -> ast.RenameObject:
        """RENAME TO."""
        return ast.RenameObject(name, span=span)

    def rename_column(self, span: Span, column: ast.Identifier, name: ast.Identifier) -> ast.RenameColumn:
        """RENAME a TO b."""
        return ast.RenameColumn(column, name, span=span)

    def set_options(self, span: Span, options: tuple[ast.Option, ...]) -> ast.SetOptions:
        """SET (...)."""
        return ast.SetOptions(options, span=span)

    def reset_options(self, span: Span, keys: tuple[str, ...]) -> ast.ResetOptions:
        """RESET (...)."""
        return ast.ResetOptions(keys, span=span)

    def set_comment(self, span: Span, comment: str) -> ast.SetComment:
        """COMMENT."""
        return ast.SetComment(comment, span=span)

    def set_query(self, span: Span, query: ast.Query) -> ast.SetQuery:
        """AS query."""
        return ast.SetQuery(query, span=span)

    def set_freshness(self, span: Span, freshness: ast.IntervalLiteral) -> ast.SetFreshness:
        """SET FRESHNESS."""
        return ast.SetFreshness(freshness, span=span)

    def set_refresh_mode(self, span: Span, mode: str) -> ast.SetRefreshMode:
        """SET REFRESH_MODE."""
        return ast.SetRefreshMode(ast.RefreshMode(mode), span=span)

    def suspend(self, span: Span) -> ast.Suspend:
        """SUSPEND."""
        return ast.Suspend(span=span)

    def resume(self, span: Span, options: tuple[ast.Option, ...] | None) -> ast.Resume:
        """RESUME."""
        return ast.Resume(options or (), span=span)

    def refresh(self, span: Span, partition: ast.PartitionSpec | None) -> ast.Refresh:
        """REFRESH."""
        return ast.Refresh(partition, span=span)

    def positioned_column(
        self, span: Span, column: ast.Column, position: ast.ColumnPosition | None
    ) -> ast.PositionedColumn:
        """A column of ADD and MODIFY."""
        return ast.PositionedColumn(column, position, span=span)

    def position_first(self, span: Span) -> ast.ColumnPosition:
        """FIRST."""
        return ast.ColumnPosition(span=span)

    def position_after(self, span: Span, column: ast.Identifier) -> ast.ColumnPosition:
        """AFTER a."""
        return ast.ColumnPosition(column, span=span)

    def add_elements(self, span: Span, change: _SchemaChange | tuple[_SchemaChange, ...]) -> ast.AddElements:
        """ADD."""
        return ast.AddElements(*_changes(change), span=span)

    def modify_elements(self, span: Span, change: _SchemaChange | tuple[_SchemaChange, ...]) -> ast.ModifyElements:
        """MODIFY."""
        return ast.ModifyElements(*_changes(change), span=span)

    def add_partitions(
        self, span: Span, if_not_exists: bool, partitions: tuple[ast.PartitionSpec, ...]
    ) -> ast.AddPartitions:
        """ADD PARTITION."""
        return ast.AddPartitions(partitions, if_not_exists, span=span)

    def added_partition(
        self, span: Span, partition: ast.PartitionSpec, options: tuple[ast.Option, ...] | None
    ) -> ast.PartitionSpec:
        """One partition with its options."""
        return ast.PartitionSpec(partition.entries, options or (), span=span)

    def drop_partitions(
        self, span: Span, if_exists: bool, partitions: tuple[ast.PartitionSpec, ...]
    ) -> ast.DropPartitions:
        """DROP PARTITION."""
        return ast.DropPartitions(partitions, if_exists, span=span)

    def drop_column(self, span: Span, column: ast.Identifier) -> ast.DropColumns:
        """DROP a."""
        return ast.DropColumns((column,), span=span)

    def drop_columns(self, span: Span, columns: tuple[ast.Identifier, ...]) -> ast.DropColumns:
        """DROP (a, b)."""
        return ast.DropColumns(columns, span=span)

    def drop_primary_key(self, span: Span) -> ast.DropPrimaryKey:
        """DROP PRIMARY KEY."""
        return ast.DropPrimaryKey(span=span)

    def drop_constraint(self, span: Span, name: ast.Name) -> ast.DropConstraint:
        """DROP CONSTRAINT c."""
        return ast.DropConstraint(name, span=span)

    def drop_watermark(self, span: Span) -> ast.DropWatermark:
        """DROP WATERMARK."""
        return ast.DropWatermark(span=span)

    def drop_distribution(self, span: Span) -> ast.DropDistribution:
        """DROP DISTRIBUTION."""
        return ast.DropDistribution(span=span)


def _changes(
    change: _SchemaChange | tuple[_SchemaChange, ...],
) -> tuple[
    tuple[ast.PositionedColumn, ...],
    tuple[ast.Constraint | ast.Expectation, ...],
    tuple[ast.Watermark, ...],
    ast.Distribution | None,
]:
    parts = change if isinstance(change, tuple) else (change,)
    columns = tuple(part for part in parts if isinstance(part, ast.PositionedColumn))
    constraints = tuple(part for part in parts if isinstance(part, ast.Constraint | ast.Expectation))
    watermarks = tuple(part for part in parts if isinstance(part, ast.Watermark))
    distributions = [part for part in parts if isinstance(part, ast.Distribution)]
    if len(watermarks) > 1:
        raise ParseError(
            "two-watermarks",
            "SQL parse failed. Multiple WATERMARK declarations are not supported yet.",
            watermarks[1].span,
        )
    return columns, constraints, watermarks, distributions[0] if distributions else None
