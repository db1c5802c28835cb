"""CREATE TABLE and CREATE VIEW: columns, keys, watermarks and LIKE resolved into catalog objects; Flink's checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flowsql_core.catalog import (
    CatalogTable,
    CatalogView,
    ColumnKind,
    ObjectPath,
    TableColumn,
    TableDistribution,
    WatermarkDefinition,
)
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expand import Expansions, expand
from flowsql_planner.bind.expression import ExpressionBinder
from flowsql_planner.bind.insert import sink_cast_allowed, sink_of
from flowsql_planner.bind.like import LikeRules
from flowsql_planner.bind.names import column_alias
from flowsql_planner.bind.query import bind_query
from flowsql_planner.bind.readable import require_readable
from flowsql_planner.bind.scope import scope_of
from flowsql_planner.bind.table import bind_stored
from flowsql_planner.bind.types import bind_type
from flowsql_planner.bind.unparse import unparse_expression, unparse_query
from flowsql_planner.bind.values import row_refs
from flowsql_planner.catalog.manager import quoted
from flowsql_planner.catalog.schema import Options, as_rowtime
from flowsql_planner.logical.nodes import Project, Rel

_ENFORCED = (
    "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED controls if the constraint "
    "checks are performed on the incoming/outgoing data. Flink does not own the data therefore the only supported mode "
    "is the NOT ENFORCED mode"
)

_FEATURES = {ColumnKind.COMPUTED: ast.LikeFeature.GENERATED, ColumnKind.METADATA: ast.LikeFeature.METADATA}


def bind_create_table(context: BindContext, node: ast.CreateTable) -> op.CreateTable | op.CreateTableAs:
    """The table that a CREATE TABLE describes; with AS SELECT, the INSERT that fills it too."""
    path = context.qualify(node.name)
    if node.query is not None and node.temporary:
        raise BindError(
            "temporary-ctas",
            "CREATE TABLE AS SELECT syntax does not support to create temporary table yet.",
            node.name.span,
            "create the table first, then INSERT INTO it",
        )
    rel = None if node.query is None else bind_query(context, node.query)
    _check_replaced(context, node, path)
    if rel is not None and node.if_not_exists:
        existing = context.catalogs.lookup(path)
        if existing is not None and isinstance(existing.value, CatalogTable):
            # As in Flink: the rows go to the table that is there.
            create = op.CreateTable(path, existing.value, False, True, False, node.span)
            return op.CreateTableAs(create, op.Insert(sink_of(rel, path, existing.value, span=node.span), node.span))
    builder = TableBuilder(context, node)
    if rel is not None:
        builder.take_query_columns(rel)
    table = builder.build()
    create = op.CreateTable(path, table, node.temporary, node.if_not_exists, node.replace, node.span)
    if rel is None:
        return create
    arranged = _arrange(rel, table, node)
    return op.CreateTableAs(create, op.Insert(sink_of(arranged, path, table, span=node.span), node.span))


def _check_replaced(context: BindContext, node: ast.CreateTable, path: ObjectPath) -> None:
    """REPLACE TABLE (without CREATE OR) wants a table to be there; the tree does not tell the two apart."""
    text = context.text_of(node.span)
    if text is not None and text[:7].upper() == "REPLACE" and context.catalogs.lookup(path) is None:
        raise BindError(
            "table-not-found",
            f"The table {quoted(path)} to be replaced doesn't exist. You can try to use CREATE TABLE AS statement or "
            "CREATE OR REPLACE TABLE AS statement.",
            node.name.span,
        )


def bind_create_view(context: BindContext, node: ast.CreateView) -> op.CreateView:
    """The view: its query bound now, kept as text with every name expanded."""
    path = context.qualify(node.name)
    return op.CreateView(path, make_view(context, node), node.temporary, node.if_not_exists, node.replace, node.span)


def make_view(context: BindContext, node: ast.CreateView) -> CatalogView:
    """The catalog object of a view."""
    expansions: Expansions = {}
    rel = bind_query(replace(context, expansions=expansions), node.query)
    require_readable(rel, context)
    names = tuple(column.name for column in rel.schema)
    if node.columns:
        if len(node.columns) != len(names):
            raise BindError(
                "view-columns",
                "VIEW definition and input fields not match:\n"
                f"\tDef fields: [{', '.join(name.text for name in node.columns)}].\n\tInput fields: "
                f"[{', '.join(names)}].",
                node.name.span,
            )
        names = tuple(name.text for name in node.columns)
    elif isinstance(node.query.body, ast.Select):
        # The query's own answer would call the second one ``a0``.
        written = [column_alias(item) for item in node.query.body.items if isinstance(item, ast.SelectItem)]
        named = [name for name in written if name is not None]
        _refuse_duplicates(named, (), node.name.span)
    _refuse_duplicates(names, node.columns, node.name.span)
    columns = tuple(TableColumn(name, column.type) for name, column in zip(names, rel.schema, strict=True))
    expanded = unparse_query(expand(node.query, expansions))
    original = context.text_of(node.query.span) or expanded
    return CatalogView(original, expanded, columns, node.comment)


def _refuse_duplicates(names: Sequence[str], nodes: Sequence[ast.Name], span: Span) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            at = nodes[i].span if nodes else span
            raise BindError("duplicate-column", f"A column with the same name `{name}` has been defined", at)


@dataclass(slots=True)
class TableBuilder:
    """Gathers the parts of a CREATE TABLE in the order in which they depend on each other.

    ``columns``, ``watermark`` and ``primary_key`` may hold what the statement adds to.
    """

    context: BindContext
    node: ast.CreateTable
    columns: list[TableColumn] = field(default_factory=list)
    watermark: WatermarkDefinition | None = None
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None
    partition_keys: tuple[str, ...] = ()
    options: Options = ()
    distribution: TableDistribution | None = None
    query_columns: t.Schema = ()
    #: The table behind LIKE.
    source: CatalogTable | None = None

    def take_query_columns(self, rel: Rel) -> None:
        """CREATE TABLE AS: the columns of the query."""
        self.query_columns = tuple(t.Column(c.name, t.without_attribute(c.type)) for c in rel.schema)

    def build(self) -> CatalogTable:
        """The checked table."""
        rules = self._inherit()
        constraint = self._primary_key_constraint()
        self._add_stored_columns()
        if self.node.query is not None:
            self._merge_query_columns()
        if constraint is not None:
            self._set_primary_key(constraint)
        self._add_computed_columns()
        self._order_columns(rules)
        self._set_watermark(rules)
        self._set_partition_keys(rules)
        options = {**dict(self.options), **{option.key: option.value for option in self.node.options}}
        self._set_distribution(rules)
        return CatalogTable(
            tuple(self.columns),
            tuple(options.items()),
            self.watermark,
            self.primary_key,
            self.primary_key_name,
            self.partition_keys,
            self.node.comment,
            self.distribution,
        )

    def build_over(self, table: CatalogTable) -> CatalogTable:
        """ALTER TABLE: the written elements beside columns, key and watermark that were put here before."""
        constraint = self._primary_key_constraint()
        self._add_stored_columns()
        if constraint is not None:
            self._set_primary_key(constraint)
        self._add_computed_columns()
        self._set_watermark(None)
        self._check_kept_parts()
        return replace(
            table,
            columns=tuple(self.columns),
            watermark=self.watermark,
            primary_key=self.primary_key,
            primary_key_name=self.primary_key_name,
        )

    def _check_kept_parts(self) -> None:
        """A column that changed its type changes what is computed from it; key and watermark must still hold."""
        stored = [column for column in self.columns if column.kind is not ColumnKind.COMPUTED]
        schema = tuple(t.Column(column.name, column.type) for column in stored)
        for i, column in enumerate(self.columns):
            if column.kind is ColumnKind.COMPUTED and column.expression is not None:
                derived = bind_stored(self.context, column.expression, schema, self.node.span)
                self.columns[i] = replace(column, type=derived.type)
        for i, column in enumerate(self.columns):
            if column.name in self.primary_key and column.type.nullable:
                self.columns[i] = replace(column, type=column.type.as_nullable(False))
            mark = self.watermark
            if mark is not None and mark.rowtime == column.name and not _is_row_time(column.type):
                raise BindError(
                    "watermark-type",
                    "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) "
                    "or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is "
                    f"{column.type}",
                    self.node.span,
                )

    def _inherit(self) -> LikeRules | None:
        """LIKE: what the source table hands on."""
        like = self.node.like
        if like is None:
            return None
        path = self.context.qualify(like.source)
        found = self.context.catalogs.lookup(path)
        if found is None:
            hint = did_you_mean(path.name, self.context.catalogs.object_names(path.catalog, path.database))
            raise BindError(
                "table-not-found",
                f"Source table '{quoted(path)}' of the LIKE clause not found in the catalog",
                like.source.span,
                hint,
            )
        if not isinstance(found.value, CatalogTable):
            raise BindError(
                "like-of-view", f"Source table '{quoted(path)}' of the LIKE clause can not be a VIEW", like.source.span
            )
        rules = LikeRules.of(like)
        source = self.source = found.value
        self.columns = list(rules.columns(source))
        self.options = rules.options(source, {option.key: option for option in self.node.options})
        if rules.includes(ast.LikeFeature.CONSTRAINTS):
            self.primary_key, self.primary_key_name = source.primary_key, source.primary_key_name
        if rules.includes(ast.LikeFeature.WATERMARKS):
            self.watermark = source.watermark
        # As in Flink, EXCLUDING these two only lets the new table say its own.
        self.partition_keys = source.partition_keys
        self.distribution = source.distribution
        return rules

    # Columns

    def _add_stored_columns(self) -> None:
        """Physical and metadata columns; computed ones need their types first."""
        for column in self.node.columns:
            if len(column.name.parts) > 1:
                raise BindError("nested-column", f"'{column.name}' is no column name", column.name.span)
            match column:
                case ast.PhysicalColumn(name, type_, _, comment):
                    made = TableColumn(name.last.text, bind_type(type_), comment=comment)
                case ast.MetadataColumn(name, type_, key, virtual, comment):
                    made = TableColumn(
                        name.last.text,
                        bind_type(type_),
                        ColumnKind.METADATA,
                        metadata_key=key,
                        virtual=virtual,
                        comment=comment,
                    )
                case ast.ComputedColumn():
                    continue
            self._add(made, column.name.span)

    def _add(self, made: TableColumn, span: Span) -> None:
        for i, known in enumerate(self.columns):
            if known.name == made.name:
                if known.kind is made.kind and made.kind in _FEATURES and self.node.like is not None:
                    rules = LikeRules.of(self.node.like)
                    if rules.overwrites(_FEATURES[made.kind]):
                        self.columns[i] = made
                        return
                raise BindError("duplicate-column", self._duplicate(known, made), span)
        self.columns.append(made)

    def _duplicate(self, known: TableColumn, made: TableColumn) -> str:
        if made.kind is ColumnKind.PHYSICAL:
            if self.node.like is not None:
                return f"A column named '{made.name}' already exists in the base table."
            return f"A regular Column named '{made.name}' already exists in the table."
        word = "generated" if made.kind is ColumnKind.COMPUTED else "metadata"
        if known.kind is made.kind:
            return (
                f"A {word} column named '{made.name}' already exists in the base table. You might want to specify "
                f"EXCLUDING {word.upper()} or OVERWRITING {word.upper()}."
            )
        return (
            f"A column named '{made.name}' already exists in the table. Duplicate columns exist in the "
            f"{'compute' if made.kind is ColumnKind.COMPUTED else 'metadata'} column and regular column."
        )

    def _merge_query_columns(self) -> None:
        """Columns only the DDL names come first, then the query's, in types that the DDL may override."""
        if self.node.column_names:
            self._reorder_query_columns()
        declared = {column.name: column for column in self.columns}
        merged = [column for column in self.columns if column.name not in {c.name for c in self.query_columns}]
        for position, column in enumerate(self.query_columns, 1):
            override = declared.get(column.name)
            if override is None:
                merged.append(TableColumn(column.name, column.type))
                continue
            if override.kind is not ColumnKind.PHYSICAL or not sink_cast_allowed(
                column.type.as_nullable(), override.type.as_nullable()
            ):
                raise BindError(
                    "incompatible-column",
                    f"Incompatible types for sink column '{column.name}' at position {position}. The source column has "
                    f"type '{column.type}', while the target column has type '{override.type}'.",
                    self.node.span,
                )
            merged.append(override)
        self.columns = merged

    def _reorder_query_columns(self) -> None:
        names = [name.text for name in self.node.column_names]
        known = {column.name: column for column in self.query_columns}
        for name in self.node.column_names:
            if name.text not in known:
                raise BindError(
                    "column-not-found",
                    f"Column '{name.text}' not found in the source schema.",
                    name.span,
                    did_you_mean(name.text, known),
                )
        if len(names) != len(known):
            raise BindError(
                "ctas-columns",
                "The number of columns in the column list must match the number of columns in the source schema.",
                self.node.span,
            )
        self.query_columns = tuple(known[name] for name in names)

    def _add_computed_columns(self) -> None:
        """Computed columns see physical and metadata columns, not each other."""
        stored = [column for column in self.columns if column.kind is not ColumnKind.COMPUTED]
        schema = tuple(t.Column(column.name, column.type) for column in stored)
        for column in self.node.columns:
            if isinstance(column, ast.ComputedColumn):
                bound = self._bind(column.expression, schema)
                text = unparse_expression(column.expression)
                made = TableColumn(column.name.last.text, bound.type, ColumnKind.COMPUTED, text, comment=column.comment)
                self._add(made, column.name.span)

    def _bind(self, expression: ast.Expression, schema: t.Schema) -> Expr:
        return self._bind_in(expression, schema, "computed column")

    def _bind_in(self, expression: ast.Expression, schema: t.Schema, clause: str) -> Expr:
        try:
            return ExpressionBinder(self.context, scope_of(schema), clause).bind(expression)
        except BindError as error:
            if error.code == "column-not-found":
                error.message = error.message.replace("Column '", "Unknown identifier '").replace(
                    "' not found in any table", "'"
                )
            raise

    def _order_columns(self, rules: LikeRules | None) -> None:
        """The DDL's order: inherited columns first (in the source's order), then those written here."""
        written = [column.name.last.text for column in self.node.columns]
        own = {column.name: column for column in self.columns}
        if self.node.query is not None:
            queried = {column.name for column in self.query_columns}
            first = [name for name in written if name not in queried]
            self.columns = [*(own[name] for name in first), *(c for c in self.columns if c.name not in first)]
            return
        inherited = [column.name for column in rules.columns(self.source)] if rules and self.source else []
        order = [*inherited, *(name for name in written if name not in inherited)]
        self.columns = [own[name] for name in order]

    # Keys, watermark, partitions

    def _primary_key_constraint(self) -> tuple[ast.Constraint, tuple[ast.Name, ...]] | None:
        found: list[tuple[ast.Constraint, tuple[ast.Name, ...]]] = [(c, c.columns) for c in self.node.constraints]
        for column in self.node.columns:
            if isinstance(column, ast.PhysicalColumn) and column.constraint is not None:
                found.append((column.constraint, (column.name.last,)))
        for constraint, _ in found:
            check_constraint(constraint)
        if len(found) > 1:
            raise BindError("duplicate-primary-key", "Duplicate primary key definition", found[1][0].span)
        return found[0] if found else None

    def _set_primary_key(self, given: tuple[ast.Constraint, tuple[ast.Name, ...]]) -> None:
        constraint, names = given
        if self.primary_key:
            raise BindError(
                "duplicate-primary-key",
                "The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS.",
                constraint.span,
            )
        known = {column.name: i for i, column in enumerate(self.columns)}
        computed = {c.name.last.text for c in self.node.columns if isinstance(c, ast.ComputedColumn)}
        for name in names:
            if name.text in computed or (
                name.text in known and self.columns[known[name.text]].kind is not ColumnKind.PHYSICAL
            ):
                raise BindError(
                    "primary-key-column",
                    f"Could not create a PRIMARY KEY with column '{name.text}'\n"
                    "A PRIMARY KEY constraint must be declared on physical columns.",
                    name.span,
                )
            if name.text not in known:
                raise BindError(
                    "column-not-found",
                    f"Primary key column '{name.text}' is not defined in the schema",
                    name.span,
                    did_you_mean(name.text, known),
                )
            column = self.columns[known[name.text]]
            self.columns[known[name.text]] = replace(column, type=column.type.as_nullable(False))
        self.primary_key = tuple(name.text for name in names)
        if len(set(self.primary_key)) != len(self.primary_key):
            raise BindError("duplicate-column", "A primary key must not contain duplicate columns.", constraint.span)
        default = "PK_" + "_".join(self.primary_key)
        self.primary_key_name = default if constraint.name is None else constraint.name.text

    def _set_watermark(self, rules: LikeRules | None) -> None:
        if not self.node.watermarks:
            return
        if len(self.node.watermarks) > 1:
            raise BindError(
                "multiple-watermarks",
                "Multiple WATERMARK declarations are not supported yet.",
                self.node.watermarks[1].span,
            )
        mark = self.node.watermarks[0]
        inherited = self.watermark
        if inherited is not None and rules is not None and not rules.overwrites(ast.LikeFeature.WATERMARKS):
            raise BindError(
                "duplicate-watermark",
                f"There already exists a watermark spec for column '{inherited.rowtime}' in the base table. You might "
                "want to specify EXCLUDING WATERMARKS or OVERWRITING WATERMARKS.",
                mark.span,
            )
        self.watermark = self._bind_watermark(mark)

    def _bind_watermark(self, mark: ast.Watermark) -> WatermarkDefinition:
        names = [column.name for column in self.columns]
        name = mark.column.last.text
        if len(mark.column.parts) > 1:
            raise BindError(
                "column-not-found",
                f"Invalid column name '{mark.column}' for rowtime attribute in watermark declaration. Available "
                f"columns are: [{', '.join(names)}]",
                mark.column.span,
            )
        if name not in names:
            raise BindError(
                "column-not-found",
                f"The rowtime attribute field '{mark.column}' is not defined in the table schema\n"
                f"Available fields: [{', '.join(repr(known) for known in names)}]",
                mark.column.span,
                did_you_mean(name, names),
            )
        type_ = self.columns[names.index(name)].type
        if t.is_proctime(type_):
            raise BindError(
                "watermark-type", "A watermark can not be defined for a processing-time attribute.", mark.column.span
            )
        if not _is_row_time(type_):
            raise BindError(
                "watermark-type",
                "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or "
                f"TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is {type_}",
                mark.column.span,
                f"cast it: {name} AS CAST(... AS TIMESTAMP(3))",
            )
        schema = tuple(t.Column(column.name, column.type) for column in self.columns)
        bound = self._bind_in(mark.expression, schema, "WATERMARK")
        if not _is_row_time(bound.type):
            raise BindError(
                "watermark-type",
                "Invalid data type of expression for watermark definition. The field must be of type TIMESTAMP(p) or "
                "TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the watermark expression type is "
                f"{bound.type}",
                mark.expression.span,
            )
        if bound.type.root != type_.root:
            raise BindError(
                "watermark-type",
                f"The watermark output type {bound.type} is different from input time filed type {type_}.",
                mark.expression.span,
            )
        return WatermarkDefinition(name, unparse_expression(mark.expression), as_rowtime(type_))

    def _set_partition_keys(self, rules: LikeRules | None) -> None:
        written = self.node.partitioned_by
        if not written:
            return
        if self.partition_keys and rules is not None and rules.includes(ast.LikeFeature.PARTITIONS):
            raise BindError(
                "duplicate-partitions",
                "The base table already has partitions defined. You might want to specify EXCLUDING PARTITIONS.",
                written[0].span,
            )
        physical = [column.name for column in self.columns if column.kind is ColumnKind.PHYSICAL]
        names = [column.name for column in self.columns]
        for name in written:
            if name.text in names and name.text not in physical:
                raise BindError(
                    "partition-key",
                    f"Invalid partition key '{name.text}'. A partition key must reference a physical column in the "
                    f"schema. Available columns are: [{', '.join(physical)}]",
                    name.span,
                )
            if name.text not in physical:
                raise BindError(
                    "column-not-found",
                    f"Partition column '{name.text}' not defined in the table schema. Available columns: "
                    f"[{', '.join(repr(known) for known in physical)}]",
                    name.span,
                    did_you_mean(name.text, physical),
                )
        self.partition_keys = tuple(name.text for name in written)

    def _set_distribution(self, rules: LikeRules | None) -> None:
        written = self.node.distribution
        if written is None:
            return
        inherited = self.distribution
        if inherited is not None and rules is not None and rules.includes(ast.LikeFeature.DISTRIBUTION):
            raise BindError(
                "duplicate-distribution",
                "The base table already has a distribution defined. You might want to specify EXCLUDING DISTRIBUTION.",
                written.span,
            )
        self.distribution = make_distribution(written, self.columns)


def check_constraint(constraint: ast.Constraint) -> None:
    """BindError for UNIQUE, and for keys that are to be enforced."""
    if constraint.kind is ast.ConstraintKind.UNIQUE:
        raise BindError("unique-constraint", "UNIQUE constraint is not supported yet", constraint.span)
    if constraint.enforced is not False:
        raise BindError("enforced-primary-key", _ENFORCED, constraint.span, "add NOT ENFORCED")


def make_distribution(node: ast.Distribution, columns: Sequence[TableColumn]) -> TableDistribution:
    """The distribution that a DISTRIBUTED clause says; its columns must be physical, its buckets at least one."""
    physical = [column.name for column in columns if column.kind is ColumnKind.PHYSICAL]
    for name in node.columns:
        if name.text not in physical:
            raise BindError(
                "bucket-key",
                f"Invalid bucket key '{name.text}'. A bucket key for a distribution must reference a physical column "
                f"in the schema. Available columns are: [{', '.join(physical)}]",
                name.span,
                did_you_mean(name.text, physical),
            )
    if node.buckets is not None and node.buckets < 1:
        raise BindError(
            "bucket-count",
            f"Invalid bucket count '{node.buckets}'. The number of buckets for a distributed table must be at least 1.",
            node.span,
        )
    kind = None if node.kind is None else node.kind.value
    return TableDistribution(tuple(name.text for name in node.columns), kind, node.buckets)


def _is_row_time(type_: t.LogicalType) -> bool:
    return isinstance(type_, t.TimestampType | t.TimestampLtzType) and type_.precision <= 3


def _arrange(rel: Rel, table: CatalogTable, node: ast.CreateTable) -> Rel:
    """CREATE TABLE AS: the query's columns at their places in the new table, NULL in those it does not fill."""
    refs = dict(zip((column.name for column in rel.schema), row_refs(rel), strict=True))
    physical = [column for column in table.columns if column.kind is ColumnKind.PHYSICAL]
    if [column.name for column in physical] == [column.name for column in rel.schema]:
        return rel
    exprs: list[Expr] = []
    for column in physical:
        if column.name not in refs and not column.type.nullable:
            raise BindError(
                "missing-not-null-column",
                f"Column '{column.name}' has no default value and does not allow NULLs",
                node.span,
            )
        exprs.append(refs.get(column.name) or Literal(None, column.type, node.span))
    return Project(rel, tuple(exprs), tuple(column.name for column in physical), node.span)
