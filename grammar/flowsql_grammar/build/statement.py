"""Statements other than those that define objects."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast


class StatementBuilder:
    """Methods of the rules of statements."""

    def query_statement(self, span: Span, query: ast.Query) -> ast.QueryStatement:
        """A query."""
        return ast.QueryStatement(query, span=span)

    def insert(
        self,
        span: Span,
        words: str,
        target: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        partition: ast.PartitionSpec | None,
        query: ast.Query,
        on_conflict: str | None,
    ) -> ast.Insert:
        """INSERT without a column list."""
        return self.insert_columns(span, words, target, hints, partition, (), query, on_conflict)

    def insert_columns(
        self,
        span: Span,
        words: str,
        target: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        partition: ast.PartitionSpec | None,
        columns: tuple[ast.Identifier, ...],
        query: ast.Query,
        on_conflict: str | None,
    ) -> ast.Insert:
        """INSERT."""
        return ast.Insert(
            target,
            query,
            columns,
            partition,
            "OVERWRITE" in words,
            hints or (),
            ast.ConflictAction(on_conflict) if on_conflict else None,
            words.startswith("UPSERT"),
            span=span,
        )

    def update(
        self,
        span: Span,
        target: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        alias: ast.Name | None,
        assignments: tuple[ast.Assignment, ...],
        where: ast.Expression | None,
    ) -> ast.Update:
        """UPDATE."""
        return ast.Update(target, assignments, where, alias, hints or (), span=span)

    def assignment(self, span: Span, column: ast.Name, value: ast.Expression) -> ast.Assignment:
        """``a = 1``."""
        return ast.Assignment(column, value, span=span)

    def delete(
        self,
        span: Span,
        target: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        alias: ast.Name | None,
        where: ast.Expression | None,
    ) -> ast.Delete:
        """DELETE."""
        return ast.Delete(target, where, alias, hints or (), span=span)

    def merge(
        self,
        span: Span,
        target: ast.Identifier,
        alias: ast.Name | None,
        source: ast.Relation,
        condition: ast.Expression,
        update: tuple[ast.Assignment, ...],
        insert: ast.MergeInsert | None,
    ) -> ast.Merge:
        """MERGE."""
        return ast.Merge(target, source, condition, update, insert, alias, span=span)

    def merge_insert_only(
        self,
        span: Span,
        target: ast.Identifier,
        alias: ast.Name | None,
        source: ast.Relation,
        condition: ast.Expression,
        insert: ast.MergeInsert,
    ) -> ast.Merge:
        """MERGE without UPDATE."""
        return ast.Merge(target, source, condition, (), insert, alias, span=span)

    def merge_insert(self, span: Span, columns: tuple[ast.Name, ...] | None, row: ast.Expression) -> ast.MergeInsert:
        """``WHEN NOT MATCHED THEN INSERT``."""
        values = row.items if isinstance(row, ast.RowConstructor) else (row,)
        return ast.MergeInsert(columns or (), values, span=span)

    def truncate(self, span: Span, target: ast.Identifier) -> ast.Truncate:
        """TRUNCATE TABLE."""
        return ast.Truncate(target, span=span)

    def begin_statement_set(self, span: Span) -> ast.BeginStatementSet:
        """BEGIN STATEMENT SET."""
        return ast.BeginStatementSet(span=span)

    def end_statement_set(self, span: Span) -> ast.EndStatementSet:
        """END."""
        return ast.EndStatementSet(span=span)

    def statement_set(self, span: Span, statements: tuple[ast.Insert, ...]) -> ast.StatementSet:
        """STATEMENT SET BEGIN ... END."""
        return ast.StatementSet(statements, span=span)

    def execute_set(self, span: Span, statement: ast.StatementSet) -> ast.StatementSet:
        """EXECUTE STATEMENT SET."""
        return ast.StatementSet(statement.statements, span=span)

    def execute(self, span: Span, statement: ast.QueryStatement | ast.Insert) -> ast.Execute:
        """EXECUTE."""
        return ast.Execute(statement, span=span)

    def explain(self, span: Span, details: tuple[str, ...], statement: ast.Statement) -> ast.Explain:
        """EXPLAIN of what has a plan."""
        if isinstance(statement, ast.CreateTable) and statement.query is None:
            raise ParseError(
                "syntax",
                "SQL parse failed. Unsupported CREATE OR REPLACE statement for EXPLAIN. "
                "The statement must define a query using the AS clause (i.e. CTAS/RTAS statements).",
                statement.span,
            )
        return ast.Explain(statement, tuple(ast.ExplainDetail(word) for word in details), span=span)

    def explain_plan_for(self, span: Span, statement: ast.Statement) -> ast.Explain:
        """EXPLAIN PLAN FOR."""
        return self.explain(span, (), statement)

    def explain_lineage(self, span: Span, statement: ast.Statement) -> ast.Explain:
        """EXPLAIN LINEAGE, which Flink has not."""
        return self.explain(span, (ast.ExplainDetail.LINEAGE,), statement)

    def compile_plan(
        self, span: Span, path: str, if_not_exists: bool, statement: ast.Insert | ast.StatementSet
    ) -> ast.CompilePlan:
        """COMPILE PLAN."""
        return ast.CompilePlan(path, statement, if_not_exists, span=span)

    def compile_and_execute_plan(
        self, span: Span, path: str, statement: ast.Insert | ast.StatementSet
    ) -> ast.CompileAndExecutePlan:
        """COMPILE AND EXECUTE PLAN."""
        return ast.CompileAndExecutePlan(path, statement, span=span)

    def execute_plan(self, span: Span, path: str) -> ast.ExecutePlan:
        """EXECUTE PLAN."""
        return ast.ExecutePlan(path, span=span)

    def set_list(self, span: Span) -> ast.Set:
        """SET."""
        return ast.Set(span=span)

    def set_option(self, span: Span, key: str, value: str) -> ast.Set:
        """``SET 'k' = 'v'``."""
        return ast.Set(key, value, span=span)

    def reset_all(self, span: Span) -> ast.Reset:
        """RESET."""
        return ast.Reset(span=span)

    def reset_option(self, span: Span, key: str) -> ast.Reset:
        """``RESET 'k'``."""
        return ast.Reset(key, span=span)

    def use_catalog(self, span: Span, name: ast.Name) -> ast.UseCatalog:
        """USE CATALOG."""
        return ast.UseCatalog(name, span=span)

    def use_database(self, span: Span, name: ast.Identifier) -> ast.UseDatabase:
        """USE."""
        return ast.UseDatabase(name, span=span)

    def use_modules(self, span: Span, names: tuple[ast.Name, ...]) -> ast.UseModules:
        """USE MODULES."""
        return ast.UseModules(names, span=span)

    def load_module(self, span: Span, name: ast.Name, options: tuple[ast.Option, ...] | None) -> ast.LoadModule:
        """LOAD MODULE."""
        return ast.LoadModule(name, options or (), span=span)

    def unload_module(self, span: Span, name: ast.Name) -> ast.UnloadModule:
        """UNLOAD MODULE."""
        return ast.UnloadModule(name, span=span)

    def add_jar(self, span: Span, path: str) -> ast.AddJar:
        """ADD JAR."""
        return ast.AddJar(path, span=span)

    def remove_jar(self, span: Span, path: str) -> ast.RemoveJar:
        """REMOVE JAR."""
        return ast.RemoveJar(path, span=span)

    def call_procedure(self, span: Span, call: ast.FunctionCall) -> ast.Call:
        """CALL."""
        if not isinstance(call, ast.FunctionCall):
            raise ParseError("bad-descriptor", "SQL parse failed. DESCRIPTOR is no procedure.", span)
        if call.quantifier or call.order_by:
            raise ParseError("syntax", "SQL parse failed. A procedure takes neither DISTINCT nor ORDER BY.", span)
        return ast.Call(call, span=span)

    def stop_job(self, span: Span, job_id: str, with_savepoint: bool, with_drain: bool) -> ast.StopJob:
        """STOP JOB; draining needs the savepoint."""
        if with_drain and not with_savepoint:
            raise ParseError("syntax", "SQL parse failed. WITH DRAIN could only be used after WITH SAVEPOINT.", span)
        return ast.StopJob(job_id, with_savepoint, with_drain, span=span)

    # Inspection

    def show_plain(self, span: Span, words: str) -> ast.Show:
        """SHOW of a list without filters."""
        return ast.Show(ast.ShowKind(words), span=span)

    def show_like(self, span: Span, words: str, like: ast.ShowLike | None) -> ast.Show:
        """SHOW with a pattern."""
        return ast.Show(ast.ShowKind(words), None, like, span=span)

    def show_in(
        self,
        span: Span,
        words: str,
        place: tuple[ast.Preposition, ast.Identifier] | None,
        like: ast.ShowLike | None,
    ) -> ast.Show:
        """SHOW with a place and a pattern."""
        preposition, path = place or (None, None)
        if path is not None:
            parts = 1 if words == "DATABASES" else 2
            if len(path.parts) > parts:
                # Flink's words, which spell the two cases differently.
                complaint = (
                    f"Show databases from/in identifier [ {path} ] format error, catalog must be a single part "
                    "identifier."
                    if parts == 1
                    else f"SHOW {words} from/in identifier [ {path} ] format error, it should be "
                    "[catalog_name.]database_name."
                )
                raise ParseError("syntax", f"SQL parse failed. {complaint}", path.span)
        return ast.Show(ast.ShowKind(words), path, like, None, preposition, span=span)

    def show_columns(
        self, span: Span, place: tuple[ast.Preposition, ast.Identifier], like: ast.ShowLike | None
    ) -> ast.Show:
        """SHOW COLUMNS."""
        return ast.Show(ast.ShowKind.COLUMNS, place[1], like, None, place[0], span=span)

    def show_partitions(self, span: Span, table: ast.Identifier, partition: ast.PartitionSpec | None) -> ast.Show:
        """SHOW PARTITIONS."""
        return ast.Show(ast.ShowKind.PARTITIONS, table, None, partition, span=span)

    def show_operators(self, span: Span, savepoint: str) -> ast.ShowOperators:
        """SHOW OPERATORS."""
        return ast.ShowOperators(savepoint, span=span)

    def place(self, span: Span, word: str, path: ast.Identifier) -> tuple[ast.Preposition, ast.Identifier]:
        """``FROM x``."""
        return ast.Preposition(word), path

    def show_like_clause(self, span: Span, negated: bool, word: str, pattern: str) -> ast.ShowLike:
        """``NOT LIKE 'p'``."""
        return ast.ShowLike(pattern, negated, word == "ILIKE", span=span)

    def show_current(self, span: Span, word: str) -> ast.ShowCurrent:
        """SHOW CURRENT."""
        return ast.ShowCurrent(ast.ShowCurrentKind(word), span=span)

    def show_create(self, span: Span, words: str, name: ast.Identifier) -> ast.ShowCreate:
        """SHOW CREATE."""
        return ast.ShowCreate(ast.ShowCreateKind(words), name, span=span)

    def show_create_file(self, span: Span, name: ast.FileName) -> ast.ShowCreate:
        """SHOW CREATE TABLE of a file."""
        return ast.ShowCreate(ast.ShowCreateKind.TABLE, name, span=span)

    def describe_table(self, span: Span, name: ast.Identifier) -> ast.Describe:
        """DESCRIBE t."""
        return ast.Describe(ast.DescribeKind.TABLE, name, span=span)

    def describe_extended_table(self, span: Span, name: ast.Identifier) -> ast.Describe:
        """DESCRIBE EXTENDED t."""
        return ast.Describe(ast.DescribeKind.TABLE, name, extended=True, span=span)

    def describe_object(self, span: Span, kind: str, extended: bool, name: ast.Identifier) -> ast.Describe:
        """DESCRIBE of an object whose kind is named."""
        return ast.Describe(ast.DescribeKind(kind), name, extended, span=span)

    def describe_statement(
        self, span: Span, statement: ast.QueryStatement | ast.Insert | ast.Update | ast.Delete | ast.Merge
    ) -> ast.DescribeStatement:
        """DESCRIBE of a query or a change."""
        return ast.DescribeStatement(statement, span=span)

    def describe_job(self, span: Span, job_id: str) -> ast.DescribeJob:
        """DESCRIBE JOB."""
        return ast.DescribeJob(job_id, span=span)
