"""Tables, results and errors in the cells of a real kernel."""

from __future__ import annotations

import re

from tests.display.conftest import Notebook

PEOPLE = "(VALUES (1, 'ann'), (2, '<b>bob</b>'), (3, CAST(NULL AS STRING))) AS people (id, name)"


def query(sql: str) -> str:
    return f'env.sql_query("{sql}")'


def statement(sql: str) -> str:
    return f'env.execute_sql("{sql}")'


def test_a_table_that_ends_shows_its_rows(notebook: Notebook) -> None:
    (output,) = notebook.run(query(f"SELECT * FROM {PEOPLE}"))
    assert output.kind == "execute_result"
    assert output.head == ["id", "name"]
    assert output.cells == [["1", "ann"], ["2", "<b>bob</b>"], ["3", "<NULL>"]]
    assert "<b>" not in output.html
    assert output.line == "3 rows"


def test_an_updating_table_that_ends_shows_what_is_left(notebook: Notebook) -> None:
    (output,) = notebook.run(query("SELECT k, COUNT(*) AS n FROM (VALUES 1, 2, 1) AS t (k) GROUP BY k"))
    assert output.cells == [["1", "2"], ["2", "1"]]


def test_a_long_table_shows_its_first_rows(notebook: Notebook) -> None:
    values = ", ".join(map(str, range(50)))
    (output,) = notebook.run(query(f"SELECT * FROM (VALUES {values}) AS t (n)"))
    assert output.cells == [[str(n)] for n in range(20)]
    assert output.line == "the first 20 rows; there are more"


def test_a_table_that_never_ends_shows_its_columns(notebook: Notebook) -> None:
    (output,) = notebook.run('env.from_path("clicks")')
    assert output.head == ["n"]
    assert output.cells == []
    assert output.line == "rows that never end: show() keeps them up to date"


def test_show_keeps_a_table_up_to_date_until_the_cell_is_interrupted(notebook: Notebook) -> None:
    outputs = notebook.run('env.from_path("clicks").show(3)', interrupted_after=4)
    assert [output.kind for output in outputs[:4]] == ["display_data", *["update_display_data"] * 3]
    newest = [int(output.cells[-1][0]) for output in outputs]
    assert newest == sorted(newest)
    assert newest[0] < newest[3]
    for output in outputs:
        numbers = [int(cell) for (cell,) in output.cells]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len(numbers) <= 3
    assert re.fullmatch(r"the newest 3 rows of \d+ \[\d+ s, \d+ rows, \d+ rows/s, [\d,]+ rows read\]", outputs[2].line)
    assert outputs[-1].line.endswith(", stopped")


def test_show_of_an_updating_table_that_never_ends(notebook: Notebook) -> None:
    outputs = notebook.run(
        query("SELECT n / n AS k, COUNT(*) AS n FROM clicks WHERE n > 0 GROUP BY n / n") + ".show(timeout=1.5)"
    )
    counts = [int(output.cells[0][1]) for output in outputs if output.cells]
    assert all(len(output.cells) <= 1 for output in outputs)
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert outputs[-1].line == "1 row, stopped after 1.5 s"


def test_the_job_of_show_is_over_behind_it(notebook: Notebook) -> None:
    code = 'result = env.execute_sql("SELECT * FROM clicks")\nresult.show(timeout=0.5)\n'
    assert notebook.run(code + "print(result.get_job_client().get_job_status().value)")[-1].text == "CANCELED\n"


def test_answers_that_are_known_at_once(notebook: Notebook) -> None:
    (done,) = notebook.run(statement("CREATE TEMPORARY VIEW ones AS SELECT 1 AS x"))
    assert done.line == "OK"
    (tables,) = notebook.run(statement("SHOW TABLES"))
    assert (tables.head, tables.cells, tables.line) == (["table name"], [["clicks"], ["ones"]], "2 rows")
    (plan,) = notebook.run(statement("EXPLAIN SELECT x FROM ones"))
    assert "<pre>== Abstract Syntax Tree ==\n" in plan.html
    # They can be read behind it.
    assert notebook.run('r = env.execute_sql("SHOW TABLES")\nr._repr_html_()\nr.print()')[0].text.count("\n") == 7


def test_a_running_query_can_be_read_behind_its_preview(notebook: Notebook) -> None:
    (output,) = notebook.run("result = " + statement("SELECT * FROM clicks") + "\nresult")
    assert output.cells[0] == ["0"]
    assert output.line.endswith("so far; the query runs: show() keeps them up to date, collect() reads them")
    code = "with result.collect() as rows:\n    print([next(rows)[0] for _ in range(300)] == list(range(300)))"
    assert notebook.run(code)[0].text == "True\n"
    (again,) = notebook.run("result")
    assert re.fullmatch(r"\d+ rows read so far; job [0-9a-f]{32} is CANCELED", again.line)


def test_an_insert_tells_its_job_and_how_far_it_is(notebook: Notebook) -> None:
    notebook.run(
        statement(
            "CREATE TABLE few (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '20', 'number-of-rows' = '60')"
        )
    )
    notebook.run(statement("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')"))
    first, *told, cleared = notebook.run(statement("INSERT INTO sink SELECT n FROM few") + ".wait()")
    assert re.fullmatch(r"\[2 s, \d+ rows read\]", first.line)
    assert all(re.fullmatch(r"\[\d s, \d+ rows read\]", output.line) for output in told)
    assert cleared.line == ""
    (output,) = notebook.run('env.execute_sql("INSERT INTO sink VALUES (1), (2)").show()')
    assert re.fullmatch(r"job [0-9a-f]{32} is FINISHED, 2 rows written", output.line)


def test_a_query_that_fails_shows_its_report(notebook: Notebook) -> None:
    sql = query("SELECT CAST(s AS INT) FROM (VALUES 'x') AS t (s)")
    (output,) = notebook.run(sql)
    assert output.line.startswith("For input string: 'x'. Invalid character found.\n")
    (error,) = notebook.run(sql + ".show()")
    assert error.kind == "error"
    assert error.text.count("Cell In") == 1
    assert "/flowsql" not in error.text
    assert "row: number 1 that the source read: EXPR$0 = 'x'" in error.text
