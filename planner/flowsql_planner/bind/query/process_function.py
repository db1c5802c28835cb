"""Calls of users' process table functions: ``FROM f(input => TABLE t PARTITION BY k, on_time => DESCRIPTOR(ts))``.

Messages are those of Flink's ``SystemTypeInference`` and its kin where Flink has one that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flowsql_compute.functions.registry import implicit_cast
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Cast, Expr
from flowsql_core.graph.process_specs import ProcessCall, ProcessTable
from flowsql_core.process_function import (
    ON_TIME,
    TIMES_WITH_UPDATES,
    UID,
    ArgumentTrait,
    ScalarParameter,
    TableParameter,
    names_of,
)
from flowsql_core.python_call import spoken_name
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import argument_cast_allowed
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.expression.user_calls import ProcessCallee
from flowsql_planner.bind.output_names import unnamed
from flowsql_planner.bind.query.on_time import TimedTable, is_time, require_attribute, time_columns
from flowsql_planner.bind.query.unique_identifier import unique_identifier
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.logical.nodes import ProcessTableFunction, Project, Rel
from flowsql_planner.logical.rewrite import refs, unique_names

#: What binds the table of an argument.
BindTable = Callable[[ast.TableArgument], Rel]


def bind_process(
    context: BindContext, callee: ProcessCallee, call: ast.FunctionCall, bind_table: BindTable
) -> ProcessTableFunction:
    """The function over its bound tables.

    Raises:
        BindError: arguments that do not fit the declaration, or each other.
    """
    return _Call(context, callee, call, bind_table).bind()


class _Call:
    def __init__(
        self, context: BindContext, callee: ProcessCallee, call: ast.FunctionCall, bind_table: BindTable
    ) -> None:
        self._context = context
        self._udf = callee.udf
        self._function = callee.function
        self._name = spoken_name(callee.function.name)
        self._call = call
        self._bind_table = bind_table

    def _refused(self, code: str, message: str, at: ast.Node, hint: str | None = None) -> BindError:
        return BindError(code, message, at.span or self._call.span, hint)

    def bind(self) -> ProcessTableFunction:
        given = self._named()
        inputs: list[Rel] = []
        tables: list[ProcessTable] = []
        scalars: list[Expr | None] = []
        texts: list[str] = []
        for parameter in self._udf.parameters:
            if isinstance(parameter, TableParameter):
                rel, table, text = self._table(parameter, given.get(parameter.name), len(tables))
                inputs.append(rel)
                tables.append(table)
            else:
                scalar = self._scalar(parameter, given.get(parameter.name))
                text = "DEFAULT()" if scalar is None else ExpressionPrinter(()).print(scalar)
                scalars.append(scalar)
            texts.append(text)
        self._check_partitions(tables, inputs)
        tables, on_time = self._on_time(tables, inputs, given.get(ON_TIME))
        uid, uid_text = self._uid(given.get(UID))
        times = [
            rel.schema[table.time_index].type
            for rel, table in zip(inputs, tables, strict=True)
            if table.time_index is not None
        ]
        call = ProcessCall(
            self._function,
            self._udf.parameters,
            tuple(tables),
            tuple(scalars),
            self._udf.states,
            self._udf.has_timers,
            self._result(),
            times[0].as_nullable(False) if times else None,
            uid,
            self._udf.changelog_mode,
            self._udf.choose_changelog_mode,
            self._call.span,
        )
        self._check_times(call, inputs)
        invocation = f"{self._name}({', '.join([*texts, on_time, uid_text])})"
        schema = call.output([rel.schema for rel in inputs])
        names = unique_names(column.name for column in schema)
        named = tuple(t.Column(name, column.type) for name, column in zip(names, schema, strict=True))
        return ProcessTableFunction(tuple(inputs), call, named, invocation, self._call.span)

    def _result(self) -> t.Schema:
        row = self._udf.result_type
        assert isinstance(row, t.RowType)
        return tuple(t.Column(field.name or unnamed(place), field.type) for place, field in enumerate(row.fields))

    # Arguments by name

    def _named(self) -> dict[str, ast.Argument]:
        names = names_of(self._udf.parameters)
        given: dict[str, ast.Argument] = {}
        for position, argument in enumerate(self._call.args):
            if isinstance(argument, ast.NamedArgument):
                name, value = argument.name.text, argument.value
                if name not in names:
                    raise self._refused(
                        "unknown-parameter",
                        f"{self._name} has no argument '{name}'",
                        argument,
                        did_you_mean(name, names) or self._udf.form(self._name),
                    )
            elif position >= len(names):
                raise self._refused(
                    "argument-count",
                    f"{self._name} takes at most {len(names)} arguments",
                    argument,
                    self._udf.form(self._name),
                )
            else:
                name, value = names[position], argument
            if name in given:
                raise self._refused(
                    "duplicate-parameter", f"Argument '{name}' of {self._name} is given twice", argument
                )
            if not isinstance(value, ast.DefaultValue):
                given[name] = value
        for parameter in self._udf.parameters:
            needed = isinstance(parameter, TableParameter) or not parameter.optional
            if needed and parameter.name not in given:
                raise self._refused(
                    "argument-count",
                    f"{self._name} needs the argument '{parameter.name}'",
                    self._call,
                    self._udf.form(self._name),
                )
        return given

    # Scalars

    def _scalar(self, parameter: ScalarParameter, given: ast.Argument | None) -> Expr | None:
        if given is None:
            return None
        if isinstance(given, ast.TableArgument | ast.ModelArgument | ast.Descriptor | ast.Subquery):
            raise self._refused(
                "bad-argument", f"The argument '{parameter.name}' of {self._name} is a scalar value", given
            )
        assert not isinstance(given, ast.NamedArgument)
        bound = ExpressionBinder(self._context, Scope(), self._name).bind(given)
        if parameter.type is None or isinstance(bound.type, t.NullType):
            return bound if parameter.type is None else Cast(bound, parameter.type, implicit=True)
        if not argument_cast_allowed(bound.type, parameter.type):
            raise self._refused(
                "argument-types",
                f"The argument '{parameter.name}' of {self._name} is {parameter.type}, not {bound.type.as_nullable()}",
                given,
                self._udf.form(self._name),
            )
        return implicit_cast(bound, parameter.type)

    def _uid(self, given: ast.Argument | None) -> tuple[str | None, str]:
        value, text = unique_identifier(self._context, self._name, given)
        own = self._name if any(table.is_set for table in self._udf.tables) else None
        return own if value is None else value, text

    # Tables

    def _table(
        self, parameter: TableParameter, given: ast.Argument | None, place: int
    ) -> tuple[Rel, ProcessTable, str]:
        if isinstance(given, ast.Subquery):
            given = ast.TableArgument(given.query, span=given.span)
        if not isinstance(given, ast.TableArgument):
            raise self._refused(
                "bad-table-argument",
                f"Invalid argument value. Argument '{parameter.name}' expects a table to be passed.",
                given or self._call,
                f"{parameter.name} => TABLE t",
            )
        rel = self._typed(parameter, self._bind_table(given), given)
        partition = self._partition(parameter, given, rel, place)
        order = self._order(parameter, given, rel)
        text = f"TABLE(#{place})"
        if partition:
            text += f" PARTITION BY({', '.join(f'${index}' for index in partition)})"
        if order:
            text += f" ORDER BY({', '.join(_order_text(key) for key in order)})"
        through = parameter.has(ArgumentTrait.PASS_COLUMNS_THROUGH)
        names = tuple(column.name for column in rel.schema)
        return rel, ProcessTable(parameter.name, names, partition, order, None, through), text

    def _typed(self, parameter: TableParameter, rel: Rel, given: ast.TableArgument) -> Rel:
        """The table with the columns that the argument declares: by place, under the declared names."""
        wanted = parameter.columns
        if wanted is None:
            return rel
        own = rel.schema
        fits = len(own) == len(wanted) and all(
            argument_cast_allowed(column.type, want.type) for column, want in zip(own, wanted, strict=True)
        )
        if not fits:
            raise self._refused(
                "argument-types",
                f"The table of '{parameter.name}' has the columns ({_columns(own)}), {self._name} takes "
                f"({_columns(wanted)})",
                given,
            )
        exprs = tuple(implicit_cast(ref, want.type) for ref, want in zip(refs(own), wanted, strict=True))
        names = tuple(column.name for column in wanted)
        if exprs == refs(own) and names == tuple(column.name for column in own):
            return rel
        return Project(rel, exprs, names, given.span)

    def _partition(
        self, parameter: TableParameter, given: ast.TableArgument, rel: Rel, place: int
    ) -> tuple[int, ...] | None:
        if not parameter.is_set:
            if given.partition_by or given.order_by:
                clause = "PARTITION BY" if given.partition_by else "ORDER BY"
                at = given.partition_by[0] if given.partition_by else given.order_by[0]
                raise self._refused(
                    "table-semantics",
                    f"Only tables with set semantics may be {'partitioned' if given.partition_by else 'ordered'}. "
                    f"Invalid {clause} clause in the {place}-th operand of table function '{self._name}'",
                    at,
                    f"leave it out, or declare '{parameter.name}' with SET_SEMANTIC_TABLE",
                )
            return None
        if not given.partition_by and not parameter.has(ArgumentTrait.OPTIONAL_PARTITION_BY):
            raise self._refused(
                "partition-by",
                f"Table argument '{parameter.name}' requires a PARTITION BY clause for parallel processing.",
                given,
                f"{parameter.name} => TABLE t PARTITION BY k, or declare it with OPTIONAL_PARTITION_BY",
            )
        return tuple(self._column(expression, rel, "PARTITION BY") for expression in given.partition_by)

    def _column(self, expression: ast.Expression, rel: Rel, clause: str) -> int:
        names = [column.name for column in rel.schema]
        name = expression.path.last.text if isinstance(expression, ast.ColumnRef) else None
        if name is None or name not in names:
            shown = name if name is not None else "an expression"
            raise self._refused(
                "column-not-found",
                f"Invalid column '{shown}' for {clause} clause. Available columns are: [{', '.join(names)}]",
                expression,
                None if name is None else did_you_mean(name, names),
            )
        return names.index(name)

    def _order(
        self, parameter: TableParameter, given: ast.TableArgument, rel: Rel
    ) -> tuple[tuple[int, bool, bool], ...]:
        order = []
        for item in given.order_by:
            index = self._column(item.expression, rel, "ORDER BY")
            # As Flink's plans have it here: NULLs come last unless the order is turned around.
            first = item.descending if item.nulls is None else item.nulls is ast.NullOrder.FIRST
            order.append((index, item.descending, first))
        if order and parameter.has(ArgumentTrait.SUPPORT_UPDATES):
            raise self._refused(
                "order-by",
                f"ORDER BY is not supported for table argument '{parameter.name}', which takes updates.",
                given.order_by[0],
            )
        if order:
            place, descending, _ = order[0]
            column = rel.schema[place]
            if not is_time(column.type):
                raise self._refused(
                    "order-by",
                    f"Invalid ORDER BY clause for table argument '{parameter.name}'. The first ORDER BY column must be "
                    "a TIMESTAMP or TIMESTAMP_LTZ column (up to precision 3). However, column "
                    f"'{column.name}' has data type '{column.type}'.",
                    given.order_by[0],
                )
            if descending:
                raise self._refused(
                    "order-by",
                    f"Invalid ORDER BY clause for table argument '{parameter.name}'. The first ORDER BY column must be "
                    "sorted in ascending order: rows wait for the watermark.",
                    given.order_by[0],
                )
        return tuple(order)

    def _check_partitions(self, tables: Sequence[ProcessTable], inputs: Sequence[Rel]) -> None:
        keys = [
            [rel.schema[index].type for index in table.partition or ()]
            for table, rel in zip(tables, inputs, strict=True)
        ]
        plain = [[t.without_attribute(type_).as_nullable() for type_ in types] for types in keys]
        if any(len(types) != len(plain[0]) or not all(map(_alike, types, plain[0])) for types in plain[1:]):
            shown = ", ".join(f"[{', '.join(map(str, types))}]" for types in keys)
            raise self._refused(
                "partition-by",
                "Invalid PARTITION BY columns. The number of columns and their data types must match across all "
                f"involved table arguments. Given partition key sets: {shown}",
                self._call,
                "CAST the columns in a view or a query in the place of the table",
            )

    # Time

    def _on_time(
        self, tables: list[ProcessTable], inputs: Sequence[Rel], given: ast.Argument | None
    ) -> tuple[list[ProcessTable], str]:
        declared = {parameter.name: parameter for parameter in self._udf.tables}
        if given is None:
            for table in tables:
                if declared[table.name].has(ArgumentTrait.REQUIRE_ON_TIME):
                    raise self._refused(
                        "on-time",
                        f"Table argument '{table.name}' requires a time attribute. Please provide one using the "
                        "implicit `on_time` argument. "
                        f"For example: {self._name}(..., on_time => DESCRIPTOR(`my_timestamp`))",
                        self._call,
                    )
            return tables, "DEFAULT()"
        named = [TimedTable(table.name, rel.schema) for table, rel in zip(tables, inputs, strict=True)]
        places, text = time_columns(given, named, self._call)
        made = [replace(table, time_index=place) for table, place in zip(tables, places, strict=True)]
        return made, text

    def _check_times(self, call: ProcessCall, inputs: Sequence[Rel]) -> None:
        """Times are attributes, of one kind in all tables, and rows with them never change."""
        if call.row_time is None:
            return
        for table, rel in zip(call.tables, inputs, strict=True):
            assert table.time_index is not None
            column = rel.schema[table.time_index]
            if type(column.type) is not type(call.row_time):
                raise self._refused(
                    "on-time",
                    "Invalid time attribute declaration. All columns in the `on_time` argument must reference the same "
                    f"data type kind. But found: {call.row_time.as_nullable()}, {column.type.as_nullable()}",
                    self._call,
                )
            if self._context.streaming:
                require_attribute(column, self._call)
        changes = any(
            parameter.has(ArgumentTrait.SUPPORT_UPDATES)
            for parameter in call.parameters
            if isinstance(parameter, TableParameter)
        )
        if changes or not call.changelog_mode.insert_only:
            raise self._refused("on-time", TIMES_WITH_UPDATES, self._call)


def _order_text(key: tuple[int, bool, bool]) -> str:
    index, descending, nulls_first = key
    return f"${index} {'DESC' if descending else 'ASC'}_NULLS_{'FIRST' if nulls_first else 'LAST'}"


def _columns(schema: t.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def _alike(left: t.LogicalType, right: t.LogicalType) -> bool:
    """Whether equal values of two types are equal keys: texts of any length are."""
    if isinstance(left, t.CharacterType):
        return type(left) is type(right)
    return left == right
