"""The front door of binding: any statement's tree to the operation it asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from flowsql_core.catalog import CatalogDatabase, CatalogTable, CatalogView
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.query import bind_query

_SPLIT = "split it with views or WITH"


def bind_statement(statement: ast.Statement, context: BindContext) -> op.Operation:
    """Resolve names and types of a statement.

    Raises:
        BindError: names, types or clauses do not fit together; it bears the place and the text.
        NotSupportedYetError: valid Flink SQL that is not executed yet.
    """
    try:
        return _bind(statement, context)
    except FlowSqlError as error:
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
            catalog, database = _database_path(context, name)
            return op.UseDatabase(catalog, database, name.span)
        case ast.ClientCommand(kind):
            return op.ClientCommand(kind.value)
        case ast.Show() | ast.ShowCurrent() | ast.ShowCreate() | ast.Describe():
            return _show(statement, context)
    return _bind_ddl(statement, context)


# A session mostly asks one thing: what a statement does not need is not imported.


def _insert(statement: ast.Insert, context: BindContext) -> op.Insert:
    from flowsql_planner.bind.insert import bind_insert

    return bind_insert(context, statement)


def _show(statement: ast.Show | ast.ShowCurrent | ast.ShowCreate | ast.Describe, context: BindContext) -> op.Rows:
    from flowsql_planner.bind import show

    match statement:
        case ast.Show():
            return show.bind_show(context, statement)
        case ast.ShowCurrent():
            return show.bind_show_current(context, statement)
        case ast.ShowCreate():
            return show.bind_show_create(context, statement)
        case ast.Describe():
            return show.bind_describe(context, statement)
        case _:
            assert_never(statement)


def _bind_ddl(statement: ast.Statement, context: BindContext) -> op.Operation:
    match statement:
        case ast.CreateTable() | ast.CreateView():
            return _create(statement, context)
        case ast.CreateDatabase(name, options, comment, if_not_exists):
            catalog, database = _database_path(context, name)
            made = CatalogDatabase(comment, {option.key: option.value for option in options})
            return op.CreateDatabase(catalog, database, made, if_not_exists, name.span)
        case ast.CreateCatalog():
            return _create_catalog(statement)
        case ast.Alter():
            return _alter(statement, context)
        case ast.Drop():
            return _drop(statement, context)
    raise NotSupportedYetError(_words(statement), statement.span)


def _create(statement: ast.CreateTable | ast.CreateView, context: BindContext) -> op.Operation:
    from flowsql_planner.bind import ddl

    if isinstance(statement, ast.CreateView):
        return ddl.bind_create_view(context, statement)
    return ddl.bind_create_table(context, statement)


def _explain(
    inner: ast.Statement, details: tuple[ast.ExplainDetail, ...], context: BindContext, span: Span
) -> op.Explain:
    bound = _bind(inner, context)
    if not isinstance(bound, op.Query | op.Insert | op.StatementSet):
        raise NotSupportedYetError(f"EXPLAIN {_words(inner)}", span)
    return op.Explain(bound, tuple(detail.value for detail in details))


def _database_path(context: BindContext, name: ast.Identifier) -> tuple[str, str]:
    match name.texts:
        case (database,):
            return context.catalogs.current_catalog, database
        case (catalog, database):
            return catalog, database
    raise BindError("bad-identifier", f"'{name}' is no database", name.span)


def _create_catalog(node: ast.CreateCatalog) -> op.CreateCatalog:
    options = tuple((option.key, option.value) for option in node.options)
    kind = dict(options).get("type")
    if kind is None:
        raise BindError("catalog-type", "Catalog options do not contain an option key 'type'.", node.span)
    if kind != "generic_in_memory":
        raise NotSupportedYetError(f"a catalog of type '{kind}'", node.span, "'type' = 'generic_in_memory'")
    return op.CreateCatalog(node.name.text, options, node.comment, node.if_not_exists, node.span)


def _drop(node: ast.Drop, context: BindContext) -> op.Operation:
    match node.kind:
        case ast.ObjectKind.TABLE:
            path = context.catalogs.qualify(node.name.texts)
            return op.DropTable(path, node.temporary, node.if_exists, node.name.span)
        case ast.ObjectKind.VIEW:
            path = context.catalogs.qualify(node.name.texts)
            return op.DropView(path, node.temporary, node.if_exists, node.name.span)
        case ast.ObjectKind.DATABASE:
            catalog, database = _database_path(context, node.name)
            return op.DropDatabase(catalog, database, node.if_exists, bool(node.cascade), node.name.span)
        case ast.ObjectKind.CATALOG:
            return op.DropCatalog(node.name.last.text, node.if_exists, node.name.span)
    raise NotSupportedYetError(f"DROP {node.kind.value}", node.span)


# ALTER


def _alter(node: ast.Alter, context: BindContext) -> op.Operation:
    match node.kind:
        case ast.ObjectKind.DATABASE if isinstance(node.action, ast.SetOptions):
            catalog, database = _database_path(context, node.name)
            old = context.catalogs.require_database(catalog, database, node.name.span)
            properties = {**old.properties, **{option.key: option.value for option in node.action.options}}
            return op.AlterDatabase(catalog, database, replace(old, properties=properties), node.name.span)
        case ast.ObjectKind.TABLE | ast.ObjectKind.VIEW:
            return _alter_object(node, context)
    raise NotSupportedYetError(f"ALTER {node.kind.value}", node.span)


def _alter_object(node: ast.Alter, context: BindContext) -> op.Operation:
    path = context.catalogs.qualify(node.name.texts)
    found = context.catalogs.lookup(path)
    wanted = CatalogTable if node.kind is ast.ObjectKind.TABLE else CatalogView
    if found is None or not isinstance(found.value, wanted):
        if node.if_exists:
            return op.NoOperation()
        word = node.kind.value.capitalize()
        raise BindError("table-not-found", f"{word} with identifier '{path}' does not exist.", node.name.span)
    match node.action, found.value:
        case ast.RenameObject(name), _:
            return op.AlterObject(path, None, name.last.text, found.temporary, node.name.span)
        case ast.SetOptions(options), CatalogTable() as table:
            merged = {**dict(table.options), **{option.key: option.value for option in options}}
            changed = replace(table, options=tuple(merged.items()))
            return op.AlterObject(path, changed, None, found.temporary, node.name.span)
        case ast.ResetOptions(keys), CatalogTable() as table:
            if "connector" in keys:
                raise BindError("reset-connector", "ALTER TABLE RESET does not support changing 'connector'", node.span)
            kept = tuple(item for item in table.options if item[0] not in keys)
            return op.AlterObject(path, replace(table, options=kept), None, found.temporary, node.name.span)
        case ast.SetQuery(query), CatalogView() as view:
            from flowsql_planner.bind.ddl import make_view

            as_written = ast.CreateView(node.name, query, comment=view.comment, span=node.span)
            return op.AlterObject(path, make_view(context, as_written), None, found.temporary, node.name.span)
    if isinstance(found.value, CatalogTable):
        from flowsql_planner.bind.alter import alter_table

        return op.AlterObject(path, alter_table(context, found.value, node), None, found.temporary, node.name.span)
    raise NotSupportedYetError(f"ALTER VIEW {type(node.action).__name__}", node.span)


_WORDS: dict[type[ast.Node], str] = {
    ast.Update: "UPDATE",
    ast.Delete: "DELETE",
    ast.Truncate: "TRUNCATE TABLE",
    ast.CompilePlan: "COMPILE PLAN",
    ast.ExecutePlan: "EXECUTE PLAN",
    ast.CompileAndExecutePlan: "COMPILE AND EXECUTE PLAN",
    ast.UseModules: "USE MODULES",
    ast.LoadModule: "LOAD MODULE",
    ast.UnloadModule: "UNLOAD MODULE",
    ast.AddJar: "ADD JAR",
    ast.RemoveJar: "REMOVE JAR",
    ast.Call: "CALL",
    ast.StopJob: "STOP JOB",
    ast.DescribeJob: "DESCRIBE JOB",
    ast.CreateFunction: "CREATE FUNCTION",
    ast.AlterFunction: "ALTER FUNCTION",
    ast.CreateModel: "CREATE MODEL",
    ast.CreateConnection: "CREATE CONNECTION",
    ast.CreateMaterializedTable: "CREATE MATERIALIZED TABLE",
    ast.AnalyzeTable: "ANALYZE TABLE",
}


def _words(statement: ast.Statement) -> str:
    """The statement's first words, for a refusal."""
    return _WORDS.get(type(statement), type(statement).__name__)
