"""``TableBuilder``: the parts of CREATE TABLE and of ALTER TABLE put together, in the order in which they depend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flowsql_core.catalog import (
    CatalogTable,
    ColumnKind,
    TableColumn,
    TableDistribution,
    WatermarkDefinition,
)
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.data_types import bind_column_type
from flowsql_planner.bind.ddl.expectations import (
    bind_condition,
    check_names,
    expectations_text,
    stored_expectations,
)
from flowsql_planner.bind.ddl.table_declarations import (
    bind_part,
    bind_watermark,
    check_declared_key,
    check_partition_keys,
    is_row_time,
    key_complaint,
    make_distribution,
    missing_rowtime,
    without_nulls,
    written_key,
)
from flowsql_planner.bind.ddl.table_like import LikeRules
from flowsql_planner.bind.dml.insert import sink_cast_allowed
from flowsql_planner.bind.named_table import inferred_table, look_up
from flowsql_planner.bind.query.table import bind_stored
from flowsql_planner.bind.sql_text.unparse import unparse_expression
from flowsql_planner.bind.sql_text.validated_form import FlinkForm, validated
from flowsql_planner.catalog.manager import quoted
from flowsql_planner.catalog.schema import Options
from flowsql_planner.logical.nodes import Rel

_FEATURES = {ColumnKind.COMPUTED: ast.LikeFeature.GENERATED, ColumnKind.METADATA: ast.LikeFeature.METADATA}


@dataclass(slots=True)
class TableBuilder:
    """Gathers the parts of a table in the order in which they depend on each other.

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
    #: Columns that nobody wrote, of the rows behind the options.
    inferred: tuple[TableColumn, ...] = ()
    form: FlinkForm = validated

    def take_query_columns(self, rel: Rel) -> None:
        """CREATE TABLE AS: the columns of the query."""
        self.query_columns = tuple(t.Column(c.name, t.without_attribute(c.type)) for c in rel.schema)

    def build(self) -> CatalogTable:
        """The checked table."""
        key = written_key(self.node.constraints, self.node.columns)
        rules = self._inherit()
        self._infer()
        self._add_stored_columns()
        # Columns of the key that stand here become NOT NULL; those of a query or another table have to be so.
        if key is not None:
            written = {column.name.last.text for column in self.node.columns}
            self.columns = without_nulls(self.columns, written.intersection(key.names))
        if self.node.query is not None:
            self._merge_query_columns()
        self._add_computed_columns()
        self._order_columns(rules)
        self._set_watermark(rules)
        if key is not None:
            if self.primary_key:
                raise BindError(
                    "duplicate-primary-key",
                    "The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS.",
                    key.constraint.span,
                )
            check_declared_key(key, self.columns, ())
            self.primary_key, self.primary_key_name = key.names, key.name
        self._set_partition_keys(rules)
        options = {**dict(self.options), **{option.key: option.value for option in self.node.options}}
        self._set_distribution(rules)
        self._check_inherited()
        complaint = key_complaint(self.primary_key_name, self.primary_key, self.columns)
        if complaint is not None:
            raise BindError("primary-key", complaint, key.constraint.span if key is not None else self.node.span)
        self._set_expectations(options)
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

    def _set_expectations(self, options: dict[str, str]) -> None:
        """Those that are inherited, that stand in the option, and that are written as clauses: checked, in one text."""
        text = options.pop(EXPECTATIONS, None)
        given = next((option for option in self.node.options if option.key == EXPECTATIONS), None)
        span = given.span if given is not None else self.node.like.span if self.node.like else self.node.span
        found = () if text is None else stored_expectations(text, span)
        written = tuple(part for part in self.node.constraints if isinstance(part, ast.Expectation))
        if found or written:
            check_names((*found, *written), self.primary_key_name)
            for expectation in (*found, *written):
                bind_condition(self.context, expectation, self.columns)
            options[EXPECTATIONS] = expectations_text((*found, *written), self.form)

    def build_over(self, table: CatalogTable) -> CatalogTable:
        """ALTER TABLE: the written elements beside columns, key and watermark that were put here before."""
        key = written_key(self.node.constraints, self.node.columns)
        self._add_stored_columns()
        if key is not None:
            self.primary_key, self.primary_key_name = key.names, key.name
        self._add_computed_columns()
        self._set_watermark(None)
        self._derive_computed()
        self.columns = without_nulls(self.columns, self.primary_key)
        self._check_watermark()
        return replace(
            table,
            columns=tuple(self.columns),
            watermark=self.watermark,
            primary_key=self.primary_key,
            primary_key_name=self.primary_key_name,
        )

    def _derive_computed(self) -> None:
        """A column that changed its type changes what is computed from it; one that is gone is missed."""
        stored = [column for column in self.columns if column.kind is not ColumnKind.COMPUTED]
        schema = tuple(t.Column(column.name, column.type) for column in stored)
        for i, column in enumerate(self.columns):
            if column.kind is ColumnKind.COMPUTED and column.expression is not None:
                derived = bind_stored(self.context, column.expression, schema, self.node.span)
                self.columns[i] = replace(column, type=derived.type)

    def _check_watermark(self) -> None:
        for column in self.columns:
            mark = self.watermark
            if mark is not None and mark.rowtime == column.name and not is_row_time(column.type):
                raise BindError(
                    "watermark-type",
                    "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) "
                    "or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is "
                    f"{column.type}",
                    self.node.span,
                )

    def _check_inherited(self) -> None:
        """LIKE may leave out what computed columns and the watermark of the source use."""
        if self.source is None:
            return
        self._derive_computed()
        names = [column.name for column in self.columns]
        if self.watermark is not None and self.watermark.rowtime not in names:
            raise BindError(
                "column-not-found",
                missing_rowtime(self.watermark.rowtime, names),
                self.node.span,
                "EXCLUDING WATERMARKS leaves the watermark out too",
            )
        self._check_watermark()

    def _inherit(self) -> LikeRules | None:
        """LIKE: what the source table hands on."""
        like = self.node.like
        if like is None:
            return None
        rules = LikeRules.of(like)
        found = look_up(self.context, like.source, self._options_of_files(rules))
        if found is None:
            path = self.context.qualify(like.source)
            hint = did_you_mean(path.name, self.context.catalogs.object_names(path.catalog, path.database))
            raise BindError(
                "table-not-found",
                f"Source table '{quoted(path)}' of the LIKE clause not found in the catalog",
                like.source.span,
                hint,
            )
        if not isinstance(found.value, CatalogTable):
            raise BindError(
                "like-of-view",
                f"Source table '{quoted(found.path)}' of the LIKE clause can not be a VIEW",
                like.source.span,
            )
        source = self.source = found.value
        self.columns = list(rules.columns(source))
        self.options = rules.options(source, {option.key: option for option in self.node.options})
        if rules.includes(ast.LikeFeature.CONSTRAINTS):
            self.options += tuple(option for option in source.options if option[0] == EXPECTATIONS)
            self.primary_key, self.primary_key_name = source.primary_key, source.primary_key_name
        if rules.includes(ast.LikeFeature.WATERMARKS):
            self.watermark = source.watermark
        # As in Flink, EXCLUDING these two only lets the new table say its own.
        self.partition_keys = source.partition_keys
        self.distribution = source.distribution
        return rules

    def _options_of_files(self, rules: LikeRules) -> Options:
        """LIKE FILE: what the statement says of the files itself, unless its options are those of another table."""
        written = tuple((option.key, option.value) for option in self.node.options)
        keeps = rules.includes(ast.LikeFeature.OPTIONS) and all(key not in ("connector", "path") for key, _ in written)
        return written if keeps else ()

    def _infer(self) -> None:
        """No columns are written: what the rows behind the options show, where the connector tells."""
        stored = any(not isinstance(column, ast.ComputedColumn) for column in self.node.columns)
        if stored or self.node.query is not None or self.node.like is not None:
            return
        path = self.context.qualify(self.node.name)
        keys = tuple(name.text for name in self.node.partitioned_by or ())
        given = tuple((option.key, option.value) for option in self.node.options)
        spec = TableSpec(path.parts, (), given, keys)
        found = inferred_table(self.context, spec, self.node.name.span, t.quote_identifier(path.name))
        if found is not None:
            self.inferred, self.options = found.columns, found.options
            self.columns = list(found.columns)
            self.partition_keys = () if keys else found.partition_keys

    # Columns

    def _add_stored_columns(self) -> None:
        """Physical and metadata columns; computed ones need their types first."""
        for column in self.node.columns:
            if len(column.name.parts) > 1:
                raise BindError("nested-column", f"'{column.name}' is no column name", column.name.span)
            match column:
                case ast.PhysicalColumn(name, type_, _, comment):
                    made = TableColumn(name.last.text, bind_column_type(type_), comment=comment)
                case ast.MetadataColumn(name, type_, key, virtual, comment):
                    made = TableColumn(
                        name.last.text,
                        bind_column_type(type_),
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
                if self._replaces(known, made):
                    self.columns[i] = made
                    return
                raise BindError("duplicate-column", self._duplicate(known, made), span)
        self.columns.append(made)

    def _replaces(self, known: TableColumn, made: TableColumn) -> bool:
        """Whether LIKE ... OVERWRITING lets a column take the place of one like it; LIKE FILE lets one be declared."""
        like, feature = self.node.like, _FEATURES.get(made.kind)
        if (
            like is not None
            and isinstance(like.source, ast.FileName)
            and made.kind is known.kind is ColumnKind.PHYSICAL
        ):
            return True
        if like is None or feature is None or known.kind is not made.kind:
            return False
        return LikeRules.of(like).overwrites(feature)

    def _duplicate(self, known: TableColumn, made: TableColumn) -> str:
        if made.kind is ColumnKind.PHYSICAL:
            if self.node.like is not None:
                return f"A column named '{made.name}' already exists in the base table."
            return f"A regular Column named '{made.name}' already exists in the table."
        computed = made.kind is ColumnKind.COMPUTED
        if any(column.name == made.name for column in self.query_columns):
            return (
                f"A column named '{made.name}' already exists in the source schema. "
                f"{'Computed' if computed else 'Metadata'} columns cannot overwrite columns from source."
            )
        if self.node.like is not None and known.kind is not made.kind and self._is_inherited(known):
            word = "computed" if computed else "metadata"
            return (
                f"A column named '{made.name}' already exists in the base table. {word.capitalize()} columns can only "
                f"overwrite other {word} columns."
            )
        word = "generated" if computed else "metadata"
        if known.kind is made.kind:
            return (
                f"A {word} column named '{made.name}' already exists in the base table. You might want to specify "
                f"EXCLUDING {word.upper()} or OVERWRITING {word.upper()}."
            )
        return (
            f"A column named '{made.name}' already exists in the table. Duplicate columns exist in the "
            f"{'compute' if computed else 'metadata'} column and regular column."
        )

    def _is_inherited(self, column: TableColumn) -> bool:
        return self.source is not None and column in self.source.columns

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
        for i, name in enumerate(self.node.column_names):
            if name.text in names[:i]:
                raise BindError(
                    "insert-arity",
                    "Number of columns must match number of query columns",
                    name.span,
                    f"'{name.text}' is listed twice",
                )
        self.query_columns = tuple(known[name] for name in names)

    def _add_computed_columns(self) -> None:
        """Computed columns see physical and metadata columns, not each other."""
        stored = [column for column in self.columns if column.kind is not ColumnKind.COMPUTED]
        schema = tuple(t.Column(column.name, column.type) for column in stored)
        for column in self.node.columns:
            if isinstance(column, ast.ComputedColumn):
                bound = bind_part(self.context, column.expression, schema, "computed column")
                text = unparse_expression(self.form(column.expression))
                made = TableColumn(column.name.last.text, bound.type, ColumnKind.COMPUTED, text, comment=column.comment)
                self._add(made, column.name.span)

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
        inherited += [column.name for column in self.inferred]
        order = [*inherited, *(name for name in written if name not in inherited)]
        self.columns = [own[name] for name in order]

    # Watermark, partitions, buckets

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
        self.watermark = bind_watermark(self.context, mark, self.columns, self.form)

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
        self.partition_keys = check_partition_keys(written, self.columns)

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
