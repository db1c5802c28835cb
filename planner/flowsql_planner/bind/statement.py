"""The front door of binding: any statement's tree to the operation it asks for."""

from __future__ import annotations

from typing import assert_never

from flowsql_core.catalog import CatalogDatabase
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError
from flowsql_core.interpreter.large_stack import with_room
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.query.query import bind_query

_SPLIT = "split it with views or WITH"


def bind_statement(statement: ast.Statement, context: BindContext) -> op.Operation:
    """Resolve names and types of a statement.

    Raises:
        BindError: names, types or clauses do not fit together; it bears the place and the text.
        NotSupportedYetError: valid Flink SQL that is not executed yet.
    """
    try:
        return with_room(lambda: _bind(statement, context))
    except FlowSqlError as error:
        error.at = error.at or statement.span
        raise _placed(error, context) from None
    except RecursionError:
        deep = BindError("nested-too-deeply", "The statement is nested too deeply", statement.span, _SPLIT)
        raise _placed(deep, context) from None


def _placed(error: FlowSqlError, context: BindContext) -> FlowSqlError:
    return error if context.source is None else error.within(context.source)


def _bind(statement: ast.Statement, context: BindContext) -> op.Operation:
    match statement:
        case ast.QueryStatement(query):
            return op.Query(bind_query(context, query), statement.span)
        case ast.Insert():
            return _insert(statement, context)
        case ast.StatementSet(statements):
            return op.StatementSet(tuple(_insert(insert, context) for insert in statements))
        case ast.BeginStatementSet():
            return op.BeginStatementSet()
        case ast.EndStatementSet():
            return op.EndStatementSet()
        case ast.Execute(inner):
            return _bind(inner, context)
        case ast.Explain(inner, details):
            return _explain(inner, details, context, statement.span)
        case ast.Set(key, value):
            if key is None:
                return op.ShowOptions()
            return op.SetOption(key, value or "", statement.span)
        case ast.Reset(key):
            return op.ResetOption(key)
        case ast.UseCatalog(name):
            return op.UseCatalog(name.text, statement.span)
        case ast.UseDatabase(name):
            catalog, database = context.database_path(name)
            return op.UseDatabase(catalog, database, name.span)
        case ast.ClientCommand(kind):
            return op.ClientCommand(kind.value)
        case ast.Show(kind=ast.ShowKind.JOBS):
            return op.ShowJobs()
        case ast.ShowOperators(savepoint):
            return op.ShowOperators(savepoint, statement.span)
        case ast.Show() | ast.ShowCurrent() | ast.ShowCreate() | ast.Describe():
            return _show(statement, context)
    return _bind_ddl(statement, context)


# Imported on use, for the time to the first answer: most sessions ask one kind of statement.


def _insert(statement: ast.Insert, context: BindContext) -> op.Insert:
    from flowsql_planner.bind.dml.insert import bind_insert

    return bind_insert(context, statement)


def _show(statement: ast.Show | ast.ShowCurrent | ast.ShowCreate | ast.Describe, context: BindContext) -> op.Rows:
    from flowsql_planner.bind.show import show

    match statement:
        case ast.Show():
            return show.bind_show(context, statement)
        case ast.ShowCurrent():
            return show.bind_show_current(context, statement)
        case ast.ShowCreate():
            from flowsql_planner.bind.show.show_create import bind_show_create

            return bind_show_create(context, statement)
        case ast.Describe():
            return show.bind_describe(context, statement)
        case _:
            assert_never(statement)


def _bind_ddl(statement: ast.Statement, context: BindContext) -> op.Operation:
    match statement:
        case ast.CreateTable() | ast.CreateView():
            return _create(statement, context)
        case ast.CreateDatabase(name, options, comment, if_not_exists):
            catalog, database = context.database_path(name)
            made = CatalogDatabase(comment, {option.key: option.value for option in options})
            return op.CreateDatabase(catalog, database, made, if_not_exists, name.span)
        case ast.CreateCatalog(name, options, comment, if_not_exists):
            pairs = tuple((option.key, option.value) for option in options)
            return op.CreateCatalog(name.text, pairs, comment, if_not_exists, name.span)
        case ast.Alter():
            return _alter(statement, context)
        case ast.Drop():
            return _drop(statement, context)
        case ast.UseModules(names):
            return op.UseModules(tuple(name.text for name in names), statement.span)
        case ast.LoadModule(name, options):
            return op.LoadModule(name.text, tuple((option.key, option.value) for option in options), name.span)
        case ast.UnloadModule(name):
            return op.UnloadModule(name.text, name.span)
        case ast.StopJob(job_id, with_savepoint, with_drain):
            return op.StopJob(job_id, with_savepoint, with_drain, statement.span)
        case ast.DescribeJob(job_id):
            return op.DescribeJob(job_id, statement.span)
        case ast.ExecutePlan(path):
            return op.ExecutePlan(path, statement.span)
        case ast.AnalyzeTable():
            from flowsql_planner.bind.ddl.analyze_table import bind_analyze

            return bind_analyze(context, statement)
    return _define(statement, context)


def _define(statement: ast.Statement, context: BindContext) -> op.Operation:
    from flowsql_planner.bind import java_only
    from flowsql_planner.bind.compile_plan import bind_compile_plan
    from flowsql_planner.bind.ddl import function

    match statement:
        case ast.CreateFunction():
            return function.bind_create_function(context, statement)
        case ast.AlterFunction():
            return function.bind_alter_function(context, statement)
        case ast.CompilePlan() | ast.CompileAndExecutePlan():
            return bind_compile_plan(statement, _bind(statement.statement, context))
        case ast.AddJar() | ast.RemoveJar():
            raise java_only.refuse_java(statement)
        case ast.Call():
            raise java_only.bind_call(statement)
        case ast.Truncate() | ast.Update() | ast.Delete():
            from flowsql_planner.bind.dml.row_change import refuse_row_change

            raise refuse_row_change(context, statement)
    raise NotSupportedYetError(_words(statement), statement.span)


def _create(statement: ast.CreateTable | ast.CreateView, context: BindContext) -> op.Operation:
    if isinstance(statement, ast.CreateView):
        from flowsql_planner.bind.ddl.create_view import bind_create_view

        return bind_create_view(context, statement)
    from flowsql_planner.bind.ddl.create_table import bind_create_table

    return bind_create_table(context, statement)


def _explain(
    inner: ast.Statement, details: tuple[ast.ExplainDetail, ...], context: BindContext, span: Span
) -> op.Explain:
    names = [detail.value for detail in details]
    if len(set(names)) < len(names):
        raise BindError("explain-details", "Duplicate EXPLAIN DETAIL is not allowed.", span)
    bound = _bind(inner, context)
    if isinstance(bound, op.CreateTable):
        raise BindError(
            "explain-create",
            "Unsupported CREATE OR REPLACE statement for EXPLAIN. The statement must define a query using the AS "
            "clause (i.e. CTAS/RTAS statements).",
            inner.span,
        )
    if isinstance(bound, op.CreateTableAs):
        # The plan is that of the INSERT; nothing is created.
        bound = bound.insert
    if not isinstance(bound, op.Query | op.Insert | op.StatementSet):
        raise NotSupportedYetError(f"EXPLAIN {_words(inner)}", span)
    return op.Explain(bound, tuple(detail.value for detail in details))


def _drop(node: ast.Drop, context: BindContext) -> op.Operation:
    match node.kind:
        case ast.ObjectKind.TABLE:
            path = context.qualify(node.name)
            return op.DropTable(path, node.temporary, node.if_exists, node.name.span)
        case ast.ObjectKind.VIEW:
            path = context.qualify(node.name)
            return op.DropView(path, node.temporary, node.if_exists, node.name.span)
        case ast.ObjectKind.DATABASE:
            catalog, database = context.database_path(node.name)
            return op.DropDatabase(catalog, database, node.if_exists, bool(node.cascade), node.name.span)
        case ast.ObjectKind.CATALOG:
            return op.DropCatalog(node.name.last.text, node.if_exists, node.name.span)
        case ast.ObjectKind.FUNCTION:
            from flowsql_planner.bind.ddl.function import bind_drop_function

            return bind_drop_function(context, node)
    raise NotSupportedYetError(f"DROP {node.kind.value}", node.span)


def _alter(node: ast.Alter, context: BindContext) -> op.Operation:
    from flowsql_planner.bind.ddl.alter import bind_alter

    return bind_alter(node, context)


# By name: the classes themselves are imported only with a statement that needs them.
_WORDS = {
    "Update": "UPDATE",
    "Delete": "DELETE",
    "Truncate": "TRUNCATE TABLE",
    "CompilePlan": "COMPILE PLAN",
    "ExecutePlan": "EXECUTE PLAN",
    "CompileAndExecutePlan": "COMPILE AND EXECUTE PLAN",
    "UseModules": "USE MODULES",
    "LoadModule": "LOAD MODULE",
    "UnloadModule": "UNLOAD MODULE",
    "AddJar": "ADD JAR",
    "RemoveJar": "REMOVE JAR",
    "Call": "CALL",
    "CreateFunction": "CREATE FUNCTION",
    "AlterFunction": "ALTER FUNCTION",
    "CreateModel": "CREATE MODEL",
    "CreateConnection": "CREATE CONNECTION",
    "CreateMaterializedTable": "CREATE MATERIALIZED TABLE",
    "AnalyzeTable": "ANALYZE TABLE",
    "Merge": "MERGE",
    "DescribeStatement": "DESCRIBE of a statement",
}


def _words(statement: ast.Statement) -> str:
    """The statement's first words, for a refusal."""
    return _WORDS.get(type(statement).__name__, type(statement).__name__)
