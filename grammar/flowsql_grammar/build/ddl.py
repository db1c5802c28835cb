"""Statements that create and drop objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from flowsql_core.errors import ParseError
from flowsql_core.graph.expectation import ViolationAction
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token

_Element: TypeAlias = "ast.Column | ast.Watermark | ast.Constraint | ast.Expectation"


@record
class BareColumn:
    """A name alone between the brackets of CREATE TABLE AS."""

    name: ast.Name
    span: Span


@record
class _Elements:
    columns: tuple[ast.Column, ...] = ()
    constraints: tuple[ast.Constraint | ast.Expectation, ...] = ()
    watermarks: tuple[ast.Watermark, ...] = ()
    column_names: tuple[ast.Name, ...] = ()


def _sorted_out(elements: Iterable[_Element | BareColumn] | None) -> _Elements:
    """Elements by what they are.

    Raises:
        ParseError: two watermarks, or names without types among definitions.
    """
    columns: list[ast.Column] = []
    constraints: list[ast.Constraint | ast.Expectation] = []
    watermarks: list[ast.Watermark] = []
    bare: list[BareColumn] = []
    for element in elements or ():
        match element:
            case BareColumn():
                bare.append(element)
            case ast.Watermark():
                if watermarks:
                    raise ParseError(
                        "two-watermarks",
                        "SQL parse failed. Multiple WATERMARK declarations are not supported yet.",
                        element.span,
                    )
                watermarks.append(element)
            case ast.Constraint() | ast.Expectation():
                constraints.append(element)
            case _:
                columns.append(element)
    if bare and (columns or constraints or watermarks):
        raise ParseError("syntax", f"SQL parse failed. Column '{bare[0].name}' has no type.", bare[0].span)
    return _Elements(tuple(columns), tuple(constraints), tuple(watermarks), tuple(b.name for b in bare))


class DdlBuilder:
    """Methods of the rules of CREATE, DROP, ANALYZE."""

    def create_table(
        self,
        span: Span,
        replace: bool,
        temporary: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        elements: tuple[_Element | BareColumn, ...] | None,
        comment: str | None,
        distribution: ast.Distribution | None,
        partitioned_by: tuple[ast.Name, ...] | None,
        options: tuple[ast.Option, ...] | None,
        like: ast.TableLike | None,
        query: ast.Query | None,
    ) -> ast.CreateTable:
        """CREATE TABLE in all forms."""
        found = _sorted_out(elements)
        if found.column_names and query is None:
            raise ParseError(
                "syntax",
                "SQL parse failed. Columns identifiers without types in the schema are supported on CTAS/RTAS "
                "statements only.",
                found.column_names[0].span,
                f"say the type of '{found.column_names[0]}'",
            )
        if like is not None and query is not None:
            raise ParseError("syntax", "SQL parse failed. LIKE and AS do not go together.", like.span)
        return ast.CreateTable(
            name,
            found.columns,
            found.constraints,
            found.watermarks,
            found.column_names,
            comment,
            distribution,
            partitioned_by or (),
            options or (),
            like,
            query,
            temporary,
            if_not_exists,
            replace,
            span=span,
        )

    def replace_table(
        self,
        span: Span,
        name: ast.Identifier,
        elements: tuple[_Element | BareColumn, ...] | None,
        comment: str | None,
        distribution: ast.Distribution | None,
        partitioned_by: tuple[ast.Name, ...] | None,
        options: tuple[ast.Option, ...] | None,
        query: ast.Query,
    ) -> ast.CreateTable:
        """``REPLACE TABLE ... AS query``: the same as CREATE OR REPLACE."""
        return self.create_table(
            span, True, False, False, name, elements, comment, distribution, partitioned_by, options, None, query
        )

    def create_view(
        self,
        span: Span,
        replace: bool,
        temporary: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        columns: tuple[ast.Name, ...] | None,
        comment: str | None,
        query: ast.Query,
    ) -> ast.CreateView:
        """CREATE VIEW."""
        return ast.CreateView(name, query, columns or (), comment, temporary, if_not_exists, replace, span=span)

    def create_function(
        self,
        span: Span,
        replace: bool,
        temporary: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        class_name: str,
        language: str | None,
        resources: tuple[ast.Resource, ...] | None,
        options: tuple[ast.Option, ...] | None,
        system: bool = False,
    ) -> ast.CreateFunction:
        """CREATE FUNCTION."""
        if resources and language == "PYTHON":
            raise ParseError(
                "syntax",
                "SQL parse failed. CREATE FUNCTION USING JAR/ARTIFACT syntax is not applicable to PYTHON language.",
                resources[0].span,
            )
        return ast.CreateFunction(
            name,
            class_name,
            ast.FunctionLanguage(language) if language else None,
            resources or (),
            options or (),
            temporary,
            system,
            if_not_exists,
            replace=replace,
            span=span,
        )

    def create_system_function(
        self,
        span: Span,
        replace: bool,
        if_not_exists: bool,
        name: ast.Name,
        class_name: str,
        language: str | None,
        resources: tuple[ast.Resource, ...] | None,
        options: tuple[ast.Option, ...] | None,
    ) -> ast.CreateFunction:
        """CREATE TEMPORARY SYSTEM FUNCTION."""
        path = ast.Identifier((name,), span=name.span)
        return self.create_function(
            span, replace, True, if_not_exists, path, class_name, language, resources, options, system=True
        )

    def resource(self, span: Span, kind: str, path: str) -> ast.Resource:
        """``JAR 'path'``."""
        return ast.Resource(ast.ResourceKind(kind), path, span=span)

    def create_catalog(
        self,
        span: Span,
        replace: bool,
        if_not_exists: bool,
        name: ast.Name,
        comment: str | None,
        options: tuple[ast.Option, ...] | None,
    ) -> ast.CreateCatalog:
        """CREATE CATALOG."""
        return ast.CreateCatalog(name, options or (), comment, if_not_exists, replace, span=span)

    def create_database(
        self,
        span: Span,
        replace: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        comment: str | None,
        options: tuple[ast.Option, ...] | None,
    ) -> ast.CreateDatabase:
        """CREATE DATABASE."""
        return ast.CreateDatabase(name, options or (), comment, if_not_exists, replace, span=span)

    def create_model(
        self,
        span: Span,
        replace: bool,
        temporary: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        inputs: tuple[_Element | BareColumn, ...] | None,
        outputs: tuple[_Element | BareColumn, ...] | None,
        comment: str | None,
        options: tuple[ast.Option, ...] | None,
        query: ast.Query | None,
    ) -> ast.CreateModel:
        """CREATE MODEL; its columns are physical."""
        for element in (*(inputs or ()), *(outputs or ())):
            if not isinstance(element, ast.PhysicalColumn):
                raise ParseError("syntax", "SQL parse failed. A model has plain columns only.", element.span)
        return ast.CreateModel(
            name,
            _sorted_out(inputs).columns,
            _sorted_out(outputs).columns,
            options or (),
            comment,
            query,
            temporary,
            if_not_exists,
            replace=replace,
            span=span,
        )

    def create_connection(
        self,
        span: Span,
        replace: bool,
        temporary: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        comment: str | None,
        options: tuple[ast.Option, ...],
        system: bool = False,
    ) -> ast.CreateConnection:
        """CREATE CONNECTION."""
        return ast.CreateConnection(name, options, comment, temporary, system, if_not_exists, replace, span=span)

    def create_system_connection(
        self,
        span: Span,
        replace: bool,
        if_not_exists: bool,
        name: ast.Identifier,
        comment: str | None,
        options: tuple[ast.Option, ...],
    ) -> ast.CreateConnection:
        """CREATE TEMPORARY SYSTEM CONNECTION."""
        return self.create_connection(span, replace, True, if_not_exists, name, comment, options, system=True)

    def create_materialized_table(
        self,
        span: Span,
        replace: bool,
        name: ast.Identifier,
        elements: tuple[_Element | BareColumn, ...] | None,
        comment: str | None,
        distribution: ast.Distribution | None,
        partitioned_by: tuple[ast.Name, ...] | None,
        options: tuple[ast.Option, ...] | None,
        start_mode: ast.StartMode | None,
        freshness: ast.IntervalLiteral | None,
        refresh_mode: str | None,
        query: ast.Query,
        or_alter: bool = False,
    ) -> ast.CreateMaterializedTable:
        """CREATE MATERIALIZED TABLE."""
        if replace:
            raise ParseError("syntax", "SQL parse failed. CREATE OR REPLACE MATERIALIZED TABLE is not supported.", span)
        found = _sorted_out(elements)
        return ast.CreateMaterializedTable(
            name,
            query,
            found.columns,
            found.constraints,
            found.watermarks,
            found.column_names,
            comment,
            distribution,
            partitioned_by or (),
            options or (),
            freshness,
            ast.RefreshMode(refresh_mode) if refresh_mode else None,
            start_mode,
            or_alter,
            span=span,
        )

    def create_or_alter_materialized_table(
        self,
        span: Span,
        name: ast.Identifier,
        elements: tuple[_Element | BareColumn, ...] | None,
        comment: str | None,
        distribution: ast.Distribution | None,
        partitioned_by: tuple[ast.Name, ...] | None,
        options: tuple[ast.Option, ...] | None,
        start_mode: ast.StartMode | None,
        freshness: ast.IntervalLiteral | None,
        refresh_mode: str | None,
        query: ast.Query,
    ) -> ast.CreateMaterializedTable:
        """CREATE OR ALTER MATERIALIZED TABLE."""
        return self.create_materialized_table(
            span,
            False,
            name,
            elements,
            comment,
            distribution,
            partitioned_by,
            options,
            start_mode,
            freshness,
            refresh_mode,
            query,
            or_alter=True,
        )

    def start_mode(self, span: Span, kind: str, argument: ast.Expression | None) -> ast.StartMode:
        """``FROM_NOW(INTERVAL '1' DAY)``; FROM_BEGINNING takes nothing."""
        if argument is not None and kind.endswith("FROM_BEGINNING"):
            raise ParseError("syntax", f"SQL parse failed. {kind} takes no argument.", argument.span)
        return ast.StartMode(ast.StartModeKind(kind), argument, span=span)

    def option(self, span: Span, key: str, value: str) -> ast.Option:
        """``'k' = 'v'``."""
        return ast.Option(key, value, span=span)

    # Elements of a table

    def bare_column(self, span: Span, name: ast.Identifier) -> BareColumn:
        """A name alone."""
        if len(name.parts) > 1:
            raise ParseError("syntax", f"SQL parse failed. Column '{name}' has no type.", span)
        return BareColumn(name.last, span)

    def physical_column(
        self,
        span: Span,
        name: ast.Identifier,
        type_: ast.TypeSpec,
        constraint: ast.Constraint | None,
        comment: str | None,
    ) -> ast.PhysicalColumn:
        """``a INT``."""
        return ast.PhysicalColumn(name, type_, constraint, comment, span=span)

    def computed_column(
        self, span: Span, name: ast.Identifier, expression: ast.Expression, comment: str | None
    ) -> ast.ComputedColumn:
        """``a AS b + 1``."""
        return ast.ComputedColumn(name, expression, comment, span=span)

    def metadata_column(
        self,
        span: Span,
        name: ast.Identifier,
        type_: ast.TypeSpec,
        key: str | None,
        virtual: bool,
        comment: str | None,
    ) -> ast.MetadataColumn:
        """``a INT METADATA FROM 'k' VIRTUAL``."""
        return ast.MetadataColumn(name, type_, key, virtual, comment, span=span)

    def watermark(self, span: Span, column: ast.Identifier, expression: ast.Expression) -> ast.Watermark:
        """``WATERMARK FOR a AS b``."""
        return ast.Watermark(column, expression, span=span)

    def column_constraint(self, span: Span, name: ast.Name | None, kind: str, enforced: bool | None) -> ast.Constraint:
        """A key of one column."""
        return ast.Constraint(ast.ConstraintKind(kind), (), name, enforced, span=span)

    def table_constraint(
        self, span: Span, name: ast.Name | None, kind: str, columns: tuple[ast.Name, ...], enforced: bool | None
    ) -> ast.Constraint:
        """A key."""
        return ast.Constraint(ast.ConstraintKind(kind), columns, name, enforced, span=span)

    def expectation(
        self, span: Span, name: ast.Name, word: str, condition: ast.Expression, action: str | None
    ) -> ast.Expectation:
        """``CONSTRAINT a CHECK (b) ON VIOLATION DROP``; without an action CHECK fails, as in SQL, and EXPECT warns."""
        if action is None:
            action = "FAIL" if word == "CHECK" else "WARN"
        return ast.Expectation(name, condition, ViolationAction(action), span=span)

    def distribution(
        self, span: Span, kind: str | None, columns: tuple[ast.Name, ...], buckets: Token | None
    ) -> ast.Distribution:
        """``BY HASH(a) INTO n BUCKETS``."""
        return ast.Distribution(
            columns,
            ast.DistributionKind(kind) if kind else None,
            int(buckets.text) if buckets else None,
            span=span,
        )

    def distribution_buckets(self, span: Span, buckets: Token) -> ast.Distribution:
        """``INTO n BUCKETS``."""
        return ast.Distribution((), None, int(buckets.text), span=span)

    def table_like(
        self, span: Span, source: ast.Identifier, options: tuple[ast.LikeOption, ...] | None
    ) -> ast.TableLike:
        """``LIKE t (...)``."""
        return ast.TableLike(source, options or (), span=span)

    def like_option(self, span: Span, strategy: str, feature: str) -> ast.LikeOption:
        """``EXCLUDING OPTIONS``."""
        return ast.LikeOption(ast.MergeStrategy(strategy), ast.LikeFeature(feature), span=span)

    # DROP, ANALYZE, partitions

    def drop_object(self, span: Span, temporary: bool, kind: str, if_exists: bool, name: ast.Identifier) -> ast.Drop:
        """DROP of what may be temporary."""
        return ast.Drop(ast.ObjectKind(kind), name, temporary, False, if_exists, span=span)

    def drop_permanent(self, span: Span, kind: str, if_exists: bool, name: ast.Identifier) -> ast.Drop:
        """DROP of what is never temporary."""
        if kind == "CATALOG" and len(name.parts) > 1:
            raise ParseError("syntax", "SQL parse failed. The name of a catalog has one part.", name.span)
        return ast.Drop(ast.ObjectKind(kind), name, False, False, if_exists, span=span)

    def drop_system(self, span: Span, kind: str, if_exists: bool, name: ast.Identifier) -> ast.Drop:
        """DROP TEMPORARY SYSTEM."""
        return ast.Drop(ast.ObjectKind(kind), name, True, True, if_exists, span=span)

    def drop_database(self, span: Span, if_exists: bool, name: ast.Identifier, cascade: bool | None) -> ast.Drop:
        """DROP DATABASE."""
        return ast.Drop(ast.ObjectKind.DATABASE, name, False, False, if_exists, cascade, span=span)

    def analyze(
        self,
        span: Span,
        name: ast.Identifier,
        partition: ast.PartitionSpec | None,
        columns: tuple[ast.Name, ...] | bool | None,
    ) -> ast.AnalyzeTable:
        """ANALYZE TABLE."""
        names = columns if isinstance(columns, tuple) else ()
        return ast.AnalyzeTable(name, partition, names, columns is True, span=span)

    def partition(self, span: Span, entries: tuple[ast.PartitionEntry, ...]) -> ast.PartitionSpec:
        """PARTITION (...)."""
        return ast.PartitionSpec(entries, span=span)

    def partition_value(self, span: Span, name: ast.Name, value: ast.Expression) -> ast.PartitionEntry:
        """``a = 1``."""
        return ast.PartitionEntry(name, value, span=span)

    def partition_name(self, span: Span, name: ast.Name) -> ast.PartitionEntry:
        """``a``."""
        return ast.PartitionEntry(name, span=span)
