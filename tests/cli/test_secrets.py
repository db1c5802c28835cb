"""Secrets appear in no output: of statements that succeed and fail, of commands, logs, traces, and files of jobs.

Each case has a secret of its own, so that what one case has taught the process to hide is not hidden in the next.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.errors import FlowSqlError
from flowsql.table import DataTypes, EnvironmentSettings, Schema, TableDescriptor, TableEnvironment
from flowsql_core.catalog import CatalogTable
from flowsql_core.config import Configuration
from flowsql_core.graph.specs import TableSpec
from flowsql_core.secrets.hidden import hidden, hide
from tests.changing_folders import files_below

NOWHERE = "127.0.0.1:1"
UNREACHABLE = {
    "connector": "kafka", "topic": "t", "properties.bootstrap.servers": NOWHERE, "scan.startup.mode": "earliest-offset",
    "properties.default.api.timeout.ms": "100", "properties.delivery.timeout.ms": "100",
    "properties.request.timeout.ms": "90", "properties.linger.ms": "0",
}  # fmt: skip
KAFKA = {
    **UNREACHABLE, "properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN",
    "format": "json",
}  # fmt: skip
JDBC = {"connector": "jdbc", "table-name": "t", "sink.max-retries": "0"}
REGISTRY = {**UNREACHABLE, "format": "avro-confluent"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="{}";'
HTTP = {
    "connector": "http", "url": f"http://{NOWHERE}/rows", "format": "json", "sink.max-retries": "0",
    "lookup.max-retries": "0", "reconnect.max-attempts": "1", "reconnect.initial-delay": "10 ms",
}  # fmt: skip
#: Options of tables; ``{}`` is the secret.
TABLES: dict[str, Mapping[str, str]] = {
    "jdbc password": {**JDBC, "url": f"jdbc:postgresql://{NOWHERE}/d", "username": "ada", "password": "{}"},
    "jdbc url": {**JDBC, "url": f"jdbc:postgresql://{NOWHERE}/d?user=ada&password={{}}"},
    "jdbc user in url": {**JDBC, "url": f"jdbc:postgresql://ada:{{}}@{NOWHERE}/d"},
    "mysql password": {**JDBC, "url": f"jdbc:mysql://{NOWHERE}/d", "username": "ada", "password": "{}"},
    "sqlalchemy password": {**JDBC, "url": f"postgresql+psycopg://{NOWHERE}/d", "username": "ada", "password": "{}"},
    "sqlalchemy url": {**JDBC, "url": f"postgresql+psycopg://ada:{{}}@{NOWHERE}/d"},
    "sqlalchemy two users": {**JDBC, "url": f"mysql+pymysql://ada:{{}}@{NOWHERE}/d", "username": "ada"},
    "sqlalchemy url that is none": {**JDBC, "url": "postgresql+psycopg://ada:{}@h:x/d"},
    "sqlalchemy unknown dialect": {**JDBC, "url": f"nosuch://ada:{{}}@{NOWHERE}/d"},
    "sqlalchemy file": {**JDBC, "url": "sqlite:///x.db", "username": "ada", "password": "{}"},
    "sqlalchemy odbc": {**JDBC, "url": "mssql+pyodbc://?odbc_connect=Server%3Dh%3BPWD%3D{}"},
    "kafka jaas": {**KAFKA, "properties.sasl.jaas.config": JAAS},
    "kafka broken jaas": {**KAFKA, "properties.sasl.jaas.config": "Krb5LoginModule required password='{}';"},
    "kafka password": {**KAFKA, "properties.sasl.username": "ada", "properties.sasl.password": "{}"},
    "kafka key": {**KAFKA, "properties.ssl.keystore.key": "-----BEGIN {}"},
    "kafka property of a number": {**KAFKA, "properties.ssl.key.password": "{}", "properties.buffer.memory": "much"},
    "registry user": {
        **REGISTRY, "avro-confluent.url": f"http://{NOWHERE}", "avro-confluent.basic-auth.user-info": "ada:{}",
        "avro-confluent.basic-auth.credentials-source": "USER_INFO",
    },
    "registry user without source": {
        **REGISTRY, "avro-confluent.url": f"http://{NOWHERE}", "avro-confluent.basic-auth.user-info": "ada:{}",
    },
    "registry token": {
        **REGISTRY, "avro-confluent.url": f"http://{NOWHERE}", "avro-confluent.bearer-auth.token": "{}",
        "avro-confluent.bearer-auth.credentials-source": "STATIC_TOKEN",
    },
    "registry url": {**REGISTRY, "avro-confluent.url": f"http://ada:{{}}@{NOWHERE}"},
    "registry url that is none": {**REGISTRY, "avro-confluent.url": "ftp://ada:{}@host"},
    "http token": {**HTTP, "token": "{}"},
    "http header": {**HTTP, "headers.Authorization": "Basic {}"},
    "http login": {**HTTP, "username": "ada", "password": "{}"},
    "http proxy": {**HTTP, "proxy": f"http://ada:{{}}@{NOWHERE}"},
    "http url": {**HTTP, "url": f"http://{NOWHERE}/rows?access_token={{}}"},
    "webhook token": {"connector": "webhook", "port": "none", "format": "json", "token": "{}"},
    "websocket token": {
        "connector": "websocket", "url": f"ws://{NOWHERE}/", "format": "json", "token": "{}",
        "reconnect.max-attempts": "1", "reconnect.initial-delay": "10 ms", "sink.max-retries": "0",
    },
    "path": {"connector": "filesystem", "path": "s3://key:{}@bucket/folder", "format": "csv"},
    "token of a url": {**HTTP, "url": "http://{}@127.0.0.1:1/rows"},
    "token of a url that is none": {**JDBC, "url": "nosuch://{}@h/d"},
    "any header": {**HTTP, "headers.X-Custom": "{}"},
    "unknown pwd": {"connector": "blackhole", "my.pwd": "{}"},
    "signed url": {**HTTP, "url": f"http://{NOWHERE}/rows?sig={{}}"},
    "unknown option": {"connector": "blackhole", "api-key": "{}"},
    "unknown connector": {"connector": "nosuch", "secret": "{}"},
}  # fmt: skip


class Told:
    """All that was said, and by what."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def add(self, by: str, text: str) -> None:
        self.texts.append((by, text))

    def run(self, session: TableEnvironment, statement: str) -> None:
        """A statement; what it answers, or how it fails."""
        try:
            result = session.execute_sql(statement)
            result.print()
            self.add(statement, repr(result))
            self.add(statement, str(result.get_table_schema()))
        except FlowSqlError as error:
            self.add(statement, error.render())
            self.add(statement, repr(error))
            self.add(statement, "".join(traceback.format_exception(error)))

    def lacks(self, secret: str) -> None:
        for by, text in self.texts:
            lines = [line for line in text.splitlines() if secret in line]
            assert not lines, by


class _Lines(logging.Handler):
    def __init__(self, told: Told) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter())
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.add("log", self.format(record))


@pytest.fixture
def told() -> Iterator[Told]:
    """With what is logged, at DEBUG."""
    made = Told()
    root, handler = logging.getLogger(), _Lines(made)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield made
    root.setLevel(level)
    root.removeHandler(handler)


@pytest.fixture(params=["plain", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("env", "file"))])
def secret(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A secret, and how a script names it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    made = f"s3cr3t{uuid.uuid4().hex}"
    monkeypatch.setenv("A_PASSWORD", made)
    (tmp_path / "password").write_text(made)
    return made, {"plain": made, "env": "${env:A_PASSWORD}", "file": "${file:password}"}[request.param]


def clause(options: Mapping[str, str], reference: str) -> str:
    texts = {key: text.replace("{}", reference).replace("'", "''") for key, text in options.items()}
    return ", ".join(f"'{key}' = '{text}'" for key, text in texts.items())


def session() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("restart-strategy.type", "none")
    return made


def unsaid_in_files(folder: Path, secret: str, *but: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("password", *but):
            assert secret.encode() not in path.read_bytes(), path


#: Tables whose cases end at once.
QUICK = (
    "jdbc password", "jdbc url", "sqlalchemy password", "sqlalchemy url", "kafka broken jaas",
    "registry url that is none", "path", "unknown option",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in TABLES]
)
def test_statements(
    name: str, secret: tuple[str, str], told: Told, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value, reference = secret
    run_statements(clause(TABLES[name], reference), told, tmp_path)
    told.add("output", "".join(capfd.readouterr()))
    told.lacks(value)
    unsaid_in_files(tmp_path, value)


@pytest.fixture(params=["postgres", "mariadb", "kafka"])
def server(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """The kind of a server, and what it tells of itself."""
    return request.param, request.getfixturevalue(f"{request.param}_server")


@pytest.mark.servers
def test_refused_logins(
    server: tuple[str, dict[str, str]],
    secret: tuple[str, str],
    told: Told,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    value, reference = secret
    kind, env = server
    options = {
        "postgres": {**TABLES["jdbc password"], "url": env.get("PG_JDBC", "")},
        "mariadb": {
            **TABLES["mysql password"], "url": f"jdbc:mysql://{env.get('MYSQL_HOST')}:{env.get('MYSQL_PORT')}/flowsql"
        },
        "kafka": {**TABLES["kafka jaas"], "properties.bootstrap.servers": env.get("KAFKA", "")},
    }[kind]  # fmt: skip
    run_statements(clause(options, reference), told, tmp_path)
    told.add("output", "".join(capfd.readouterr()))
    told.lacks(value)
    if kind != "kafka":
        assert any("authentication failed" in text or "Access denied" in text for _, text in told.texts)
    unsaid_in_files(tmp_path, value)


def run_statements(options: str, told: Told, tmp_path: Path) -> None:
    """Whatever may be said of a table with these options."""
    made = session()
    made.execute_sql("CREATE TABLE rows_of (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    for statement in (
        f"CREATE TABLE t (a INT) WITH ({options})",
        f"CREATE TABLE t (a INT) WITH ({options})",
        f"CREATE TABLE u (a NOTYPE) WITH ({options})",
        f"CREATE TABLE u (a INT) WITH ({options}",
        f"CREATE TABLE u (a INT) WITH ({options}, nonsense)",
        f"CREATE TABLE u (a INT, a INT) WITH ({options})",
        f"CREATE TABLE u (a INT) WITH ({options}, 'nonsense' = '1')",
        "SHOW CREATE TABLE t",
        "DESCRIBE t",
        "DESCRIBE EXTENDED t",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN CHANGELOG_MODE, ESTIMATED_COST, PLAN_ADVICE, JSON_EXECUTION_PLAN SELECT * FROM t",
        "EXPLAIN INSERT INTO t SELECT a FROM rows_of",
        "SELECT * FROM t",
        "SELECT nothing FROM u",
        "INSERT INTO t SELECT a FROM rows_of",
        f"EXPLAIN SELECT * FROM t /*+ OPTIONS({options}) */",
        f"SELECT * FROM t /*+ OPTIONS({options}, 'nonsense' = '1') */",
        f"CREATE VIEW v AS SELECT * FROM t /*+ OPTIONS({options}) */",
        "SHOW CREATE VIEW v",
        "CREATE TABLE w LIKE t",
        "SHOW CREATE TABLE w",
        f"ALTER TABLE t SET ({options})",
        f"ALTER TABLE nosuch SET ({options})",
        "COMPILE PLAN 'plan.json' FOR INSERT INTO t SELECT a FROM rows_of",
        f"CREATE CATALOG kept WITH ('type' = 'file', 'path' = '{tmp_path / 'kept'}')",
        f"CREATE TABLE kept.`default`.t (a INT) WITH ({options})",
        "SHOW CREATE TABLE kept.`default`.t",
        f"CREATE VIEW kept.`default`.v AS SELECT * FROM t /*+ OPTIONS({options}) */",
    ):
        told.run(made, statement)
    with contextlib.suppress(FlowSqlError):
        told.add("explain", made.from_path("t").explain())
        told.add("repr", repr(made.from_path("t")))


def test_what_python_shows(told: Told) -> None:
    """Texts of configurations, descriptors, tables, and what notebooks show of them."""
    value = f"s3cr3t{uuid.uuid4().hex}"
    made = session()
    made.get_config().set("s3.secret-key", value)
    builder = TableDescriptor.for_connector("jdbc").schema(Schema.new_builder().column("a", DataTypes.INT()).build())
    for key, text in TABLES["jdbc password"].items():
        builder.option(key, text.replace("{}", value))
    descriptor = builder.build()
    made.create_temporary_table("t", descriptor)
    table = made.from_descriptor(descriptor)
    for shown in (made.get_config(), made.get_config().get_configuration(), descriptor, table, made.from_path("t")):
        told.add("text", str(shown) + repr(shown))
    told.add("explain", table.explain())
    for show in (table._repr_html_, table.to_pandas, lambda: list(table.execute().collect())):
        try:
            told.add("html", str(show()))
        except FlowSqlError as error:
            told.add("error", "".join(traceback.format_exception(error)) + error.render())
    spec = TableSpec(("c", "d", "t"), (), tuple(descriptor.get_options().items()))
    told.add("internals", repr(spec) + repr(CatalogTable((), spec.options)))
    told.lacks(value)


CATALOGS: dict[str, Mapping[str, str]] = {
    "jdbc": {
        "type": "jdbc", "base-url": f"jdbc:postgresql://{NOWHERE}", "default-database": "d", "username": "ada",
        "password": "{}",
    },
    "jdbc with an unknown option": {
        "type": "jdbc", "base-url": f"jdbc:postgresql://{NOWHERE}", "default-database": "d", "username": "ada",
        "password": "{}", "colour": "red",
    },
    "sqlite": {
        "type": "jdbc", "base-url": "jdbc:sqlite:.", "default-database": "d.db", "username": "ada", "password": "{}",
    },
    "unknown": {"type": "nosuch", "api-key": "{}"},
}  # fmt: skip


@pytest.mark.parametrize("name", CATALOGS)
@pytest.mark.parametrize("kind", ["generic_in_memory", "file"])
def test_catalogs(
    name: str,
    kind: str,
    secret: tuple[str, str],
    told: Told,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    value, reference = secret
    sqlite3.connect("d.db").close()
    store = tmp_path / "store" / "c.yaml"
    layer = {"table.catalog-store.kind": kind, "table.catalog-store.file.path": str(store.parent)}
    made = TableEnvironment.of_configuration(Configuration().with_layer(layer).with_layer())
    options = clause(CATALOGS[name], reference)
    for statement in (
        f"CREATE CATALOG c WITH ({options})",
        f"CREATE CATALOG c WITH ({options})",
        f"CREATE CATALOG d WITH ({options}, nonsense)",
        "SHOW CREATE CATALOG c",
        "DESCRIBE CATALOG c",
        "DESCRIBE CATALOG EXTENDED c",
        "SHOW CATALOGS",
        f"ALTER CATALOG c SET ({options})",
        "SHOW TABLES FROM c.`d.db`",
        "SELECT * FROM c.d.t",
    ):
        told.run(made, statement)
    told.add("output", "".join(capfd.readouterr()))
    told.lacks(value)
    unsaid_in_files(tmp_path, value)
    if name == "sqlite" and kind == "file" and reference != value:
        assert reference in store.read_text()
    elif name == "sqlite" and kind == "file":
        assert not store.exists()
        assert any("The secret in 'password' of catalog 'c' would stand in a file" in text for _, text in told.texts)


JOB = """
SET 's3.access-key' = '{secret}';
SET 's3.secret-key' = '{secret}';
SET;
SET 'restart-strategy.type' = 'none';
CREATE TABLE t (a INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:d.db', 'table-name' = 't',
  'username' = 'ada', 'password' = '{secret}');
CREATE TABLE o (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:d.db',
  'table-name' = 'o', 'username' = 'ada', 'password' = '{secret}');
CREATE TABLE slow (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '40', 'number-of-rows' = '8',
  'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '8');
SELECT a, COUNT(*) FROM t GROUP BY a;
INSERT INTO o SELECT k FROM (SELECT a + 0 / (8 - a) AS k FROM (TABLE t UNION ALL TABLE slow)) GROUP BY k;
"""
COMMANDS = (
    "-D sql-client.verbose=true -f job.sql",
    "explain job.sql", "explain --format json job.sql", "explain --format mermaid job.sql", "lineage job.sql",
    "lineage --format json job.sql", "lint job.sql", "fmt --check job.sql", "tail -i tables.sql t",
    "-f broken.sql", "explain broken.sql", "lint broken.sql", "lineage broken.sql", "fmt --check broken.sql",
)  # fmt: skip
PROJECT_COMMANDS = ("plan", "run --dry-run", "run --report report.json", "plan", "explain", "lineage", "top", "test")


def test_commands(
    secret: tuple[str, str],
    told: Told,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value, reference = secret
    with contextlib.closing(sqlite3.connect("d.db")) as database:
        database.execute("CREATE TABLE t (a INT)")
        database.execute("CREATE TABLE o (a INT PRIMARY KEY)")
        database.execute("INSERT INTO t VALUES (1), (2)")
        database.commit()
    text = JOB.format(secret=reference)
    (tmp_path / "job.sql").write_text(text)
    (tmp_path / "tables.sql").write_text("".join(part for part in text.split(";") if "TABLE t" in part) + ";")
    (tmp_path / "broken.sql").write_text(text.replace("'password'", "nonsense 'password'", 1))
    project = tmp_path / "project"
    project.mkdir()
    (project / "password").write_text(value)
    (project / "flowsql.toml").write_text(f'[options]\n"s3.secret-key" = "{reference}"\n')
    # A project takes no queries, and runs in the folder that it is in.
    own = [part for part in text.split(";\n") if not part.startswith(("SELECT", "SET 's3")) and part.strip() != "SET"]
    (project / "job.sql").write_text(";\n".join(own).replace("sqlite:d.db", "sqlite:../d.db"))
    for folder, commands in ((tmp_path, COMMANDS), (project, PROJECT_COMMANDS)):
        monkeypatch.chdir(folder)
        for command in commands:
            with contextlib.suppress(SystemExit):
                main(command.split())
            said = "".join(capfd.readouterr())
            assert "no place in a pipeline" not in said
            told.add(command, said)
    assert any("/ by zero" in text for by, text in told.texts if by.startswith("run --report"))
    told.lacks(value)
    unsaid_in_files(
        tmp_path, value, *(("job.sql", "tables.sql", "broken.sql", "flowsql.toml") if reference == value else ())
    )


def test_snapshots(secret: tuple[str, str], told: Told, tmp_path: Path) -> None:
    """Checkpoints that are kept, and a savepoint, of a job whose tables and session have secrets."""
    value, reference = secret
    with contextlib.closing(sqlite3.connect("d.db")) as database:
        database.execute("CREATE TABLE o (a BIGINT PRIMARY KEY, n BIGINT)")
    made = session()
    for key, text in (
        ("s3.access-key", reference), ("s3.secret-key", reference), ("execution.checkpointing.interval", "20 ms"),
        ("execution.checkpointing.dir", f"file://{tmp_path}/checkpoints"),
        ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
    ):  # fmt: skip
        made.get_config().set(key, text)
    made.execute_sql("CREATE TABLE g (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')")
    made.execute_sql(
        "CREATE TABLE o (a BIGINT, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        f"'url' = 'jdbc:sqlite:d.db', 'table-name' = 'o', 'username' = 'ada', 'password' = '{reference}')"
    )
    job = made.execute_sql("INSERT INTO o SELECT MOD(a, 5), COUNT(*) FROM g GROUP BY MOD(a, 5)").get_job_client()
    assert job is not None
    end = time.monotonic() + 60
    while not files_below(tmp_path, "_metadata") and time.monotonic() < end:
        time.sleep(0.01)
    job.trigger_savepoint(str(tmp_path / "savepoint")).result()
    job.cancel().result()
    assert len({path.parent.parent for path in files_below(tmp_path, "_metadata")}) == 2
    told.lacks(value)
    unsaid_in_files(tmp_path, value)


#: Words of FlowSQL's own texts that somebody takes for a password.
WORDS = ("flowsql", "password", "connector", "table", "kafka", "postgresql", "option", "jdbc", "column", "hint")


@pytest.mark.parametrize("word", WORDS)
def test_a_password_that_is_a_word_spoils_no_text(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the gaps in texts that everybody knows would show it."""
    monkeypatch.setattr("flowsql_core.secrets.hidden._PLACEHOLDERS", {})
    monkeypatch.setenv("A_WORD", word)

    def said(password: str) -> list[str]:
        made = session()
        found = []
        for statement in (
            f"CREATE TABLE t (n INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://{NOWHERE}/d', "
            f"'table-name' = 't', 'username' = 'ada', 'password' = '{password}')",
            "SHOW CREATE TABLE t",
            "EXPLAIN SELECT * FROM t",
            "SELECT * FROM t",
            "SELECT nothing FROM t",
            "SELECT * FROM t /*+ OPTIONS('pasword'='x') */",
            "SELECT flowsql(1)",
            "CREATE TABLE u (n INT) WITH ('connector' = 'kafkaa')",
            "SELECT * FROM u",
            "SET",
        ):
            try:
                result = made.execute_sql(statement)
                found.append(str([list(row) for row in result.collect()]))
            except FlowSqlError as error:
                found.append(error.render())
        return found

    shown = said(word)
    monkeypatch.setattr("flowsql_core.secrets.hidden._PLACEHOLDERS", {})
    assert shown == said("x7!kTq9#s3cr3t")


def test_words_are_hidden_in_texts_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql_core.secrets.hidden._PLACEHOLDERS", {})
    hide("flowsql", "******")
    hide("x7!kTq9#", "******")
    try:
        raise ValueError('login of ada with "flowsql" at flowsql_db failed: x7!kTq9#1')
    except ValueError as error:
        made = FlowSqlError("x", f"flowsql cannot log in: {error}.", hint="pip install 'flowsql[x]'")
    assert made.render() == (
        "flowsql cannot log in: login of ada with ****** at ****** failed: ******1.\nhint: pip install 'flowsql[x]'"
    )
    assert hidden("flowsql: password=flowsql, token 'flowsql', at //ada:flowsql@h") == (
        "flowsql: password=******, token '******', at //ada:******@h"
    )
    assert hidden("flowsql") == "flowsql"
    assert FlowSqlError("x", "cannot reach nats://t0k3n@h:1, nats://a:b@h").message == (
        "cannot reach nats://******@h:1, nats://******@h"
    )
