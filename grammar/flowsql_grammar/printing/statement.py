"""Statements other than those that define objects, as text."""

from __future__ import annotations

from typing import assert_never

from flowsql_grammar import ast
from flowsql_grammar.printing.ddl import DdlPrinter, with_options
from flowsql_grammar.printing.names import name, names, path, string, words


class StatementPrinter(DdlPrinter):
    """Statements."""

    def statement(self, node: ast.Statement) -> str:
        """Any statement, without a ``;`` behind it."""
        match node:
            case ast.QueryStatement(query):
                return self.query(query)
            case ast.Insert() | ast.Update() | ast.Delete() | ast.Merge() | ast.Truncate():
                return self._change(node)
            case ast.StatementSet():
                return "EXECUTE " + self._set_block(node)
            case ast.BeginStatementSet():
                return "BEGIN STATEMENT SET"
            case ast.EndStatementSet():
                return "END"
            case ast.Execute(statement):
                return "EXECUTE " + self.statement(statement)
            case ast.Explain(statement, details):
                return words("EXPLAIN", ", ".join(detail.value for detail in details), self.statement(statement))
            case ast.CompilePlan(file, statement, if_not_exists):
                exists = "IF NOT EXISTS" if if_not_exists else None
                return words("COMPILE PLAN", string(file), exists, "FOR", self._planned(statement))
            case ast.CompileAndExecutePlan(file, statement):
                return f"COMPILE AND EXECUTE PLAN {string(file)} FOR {self._planned(statement)}"
            case ast.ExecutePlan(file):
                return f"EXECUTE PLAN {string(file)}"
            case (
                ast.Set()
                | ast.Reset()
                | ast.UseCatalog()
                | ast.UseDatabase()
                | ast.UseModules()
                | ast.LoadModule()
                | ast.UnloadModule()
                | ast.AddJar()
                | ast.RemoveJar()
                | ast.Call()
                | ast.StopJob()
                | ast.ClientCommand()
            ):
                return self._session(node)
            case ast.DescribeStatement(inner):
                return "DESCRIBE " + self.statement(inner)
            case ast.Show() | ast.ShowCurrent() | ast.ShowCreate() | ast.ShowOperators():
                return self._inspection(node)
            case ast.Describe() | ast.DescribeJob():
                return self._inspection(node)
            case _:
                return self.ddl(node)

    def _planned(self, node: ast.Runnable) -> str:
        return self._set_block(node) if isinstance(node, ast.StatementSet) else self.statement(node)

    def _set_block(self, node: ast.StatementSet) -> str:
        inserts = " ".join(self.statement(statement) + ";" for statement in node.statements)
        return f"STATEMENT SET BEGIN {inserts} END"

    def _change(self, node: ast.Insert | ast.Update | ast.Delete | ast.Merge | ast.Truncate) -> str:
        match node:
            case ast.Insert():
                columns = ", ".join(path(column) for column in node.columns)
                into = "UPSERT INTO" if node.upsert else "INSERT OVERWRITE" if node.overwrite else "INSERT INTO"
                return words(
                    into,
                    path(node.target),
                    self.hints(node.hints),
                    self.partition(node.partition) if node.partition else None,
                    f"({columns})" if columns else None,
                    self.query(node.query),
                    "ON CONFLICT DO " + node.on_conflict.value if node.on_conflict else None,
                )
            case ast.Update():
                changes = ", ".join(f"{name(a.column)} = {self.expression(a.value)}" for a in node.assignments)
                return words(
                    "UPDATE",
                    path(node.target),
                    self.hints(node.hints),
                    "AS " + name(node.alias) if node.alias else None,
                    "SET " + changes,
                    "WHERE " + self.expression(node.where) if node.where else None,
                )
            case ast.Delete():
                return words(
                    "DELETE FROM",
                    path(node.target),
                    self.hints(node.hints),
                    "AS " + name(node.alias) if node.alias else None,
                    "WHERE " + self.expression(node.where) if node.where else None,
                )
            case ast.Merge(target, source, condition, update, insert, alias):
                changes = ", ".join(f"{name(a.column)} = {self.expression(a.value)}" for a in update)
                return words(
                    "MERGE INTO",
                    path(target),
                    f"AS {name(alias)}" if alias else None,
                    "USING " + self.relation(source),
                    "ON " + self.expression(condition),
                    f"WHEN MATCHED THEN UPDATE SET {changes}" if changes else None,
                    self._merge_insert(insert) if insert else None,
                )
            case ast.Truncate(target):
                return f"TRUNCATE TABLE {path(target)}"
            case _:
                assert_never(node)

    def _session(
        self,
        node: ast.Set
        | ast.Reset
        | ast.UseCatalog
        | ast.UseDatabase
        | ast.UseModules
        | ast.LoadModule
        | ast.UnloadModule
        | ast.AddJar
        | ast.RemoveJar
        | ast.Call
        | ast.StopJob
        | ast.ClientCommand,
    ) -> str:
        match node:
            case ast.Set(key, value):
                return "SET" if key is None else f"SET {string(key)} = {string(value or '')}"
            case ast.Reset(key):
                return "RESET" if key is None else f"RESET {string(key)}"
            case ast.UseCatalog(catalog):
                return f"USE CATALOG {name(catalog)}"
            case ast.UseDatabase(database):
                return f"USE {path(database)}"
            case ast.UseModules(modules):
                return "USE MODULES " + ", ".join(name(module) for module in modules)
            case ast.LoadModule(module, options):
                return words("LOAD MODULE", name(module), with_options(options))
            case ast.UnloadModule(module):
                return f"UNLOAD MODULE {name(module)}"
            case ast.AddJar(file):
                return f"ADD JAR {string(file)}"
            case ast.RemoveJar(file):
                return f"REMOVE JAR {string(file)}"
            case ast.Call(call):
                return "CALL " + self.call(call)
            case ast.StopJob(job, with_savepoint, with_drain):
                savepoint = "WITH SAVEPOINT" if with_savepoint else None
                return words("STOP JOB", string(job), savepoint, "WITH DRAIN" if with_drain else None)
            case ast.ClientCommand(kind):
                return kind.value
            case _:
                assert_never(node)

    def _merge_insert(self, node: ast.MergeInsert) -> str:
        columns = names(node.columns) if node.columns else None
        return words("WHEN NOT MATCHED THEN INSERT", columns, f"VALUES ({self.expressions(node.values)})")

    def _inspection(
        self,
        node: ast.Show | ast.ShowCurrent | ast.ShowCreate | ast.ShowOperators | ast.Describe | ast.DescribeJob,
    ) -> str:
        match node:
            case ast.Show(kind, place, like, partition, preposition):
                pattern = None
                if like is not None:
                    word = "ILIKE" if like.ignore_case else "LIKE"
                    pattern = f"{'NOT ' if like.negated else ''}{word} {string(like.pattern)}"
                return words(
                    "SHOW",
                    kind.value,
                    preposition.value if preposition else None,
                    path(place) if place else None,
                    self.partition(partition) if partition else None,
                    pattern,
                )
            case ast.ShowOperators(savepoint):
                return f"SHOW OPERATORS IN {string(savepoint)}"
            case ast.ShowCurrent(kind):
                return f"SHOW CURRENT {kind.value}"
            case ast.ShowCreate(kind, target):
                return f"SHOW CREATE {kind.value} {path(target)}"
            case ast.Describe(kind, target, extended):
                shown = None if kind is ast.DescribeKind.TABLE else kind.value
                return words("DESCRIBE", shown, "EXTENDED" if extended else None, path(target))
            case ast.DescribeJob(job):
                return f"DESCRIBE JOB {string(job)}"
            case _:
                assert_never(node)
