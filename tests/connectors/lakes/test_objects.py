"""Lakes whose files are in an object store, reached by the options of the libraries or of the session."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from flowsql.errors import FlowSqlError

from .sessions import answer, session

pytestmark = pytest.mark.servers


def clause(kind: str, server: dict[str, str], folder: Path, secret: str) -> str:
    root = f"s3://{server['S3_BUCKET']}/{folder.name}"
    if kind == "delta":
        options = {
            "connector": "delta",
            "table-path": f"{root}/t",
            "storage.aws_endpoint_url": server["S3_ENDPOINT"],
            "storage.aws_access_key_id": server["AWS_ACCESS_KEY_ID"],
            "storage.aws_secret_access_key": secret,
            "storage.aws_region": "us-east-1",
            "storage.aws_allow_http": "true",
        }
    else:
        options = {
            "connector": "iceberg",
            "catalog-name": "c",
            "catalog-type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": root,
            "catalog-database": "d",
            "s3.endpoint": server["S3_ENDPOINT"],
            "s3.access-key-id": server["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": secret,
            "s3.region": "us-east-1",
        }
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a name that no other run has in the bucket."""
    made = tmp_path / uuid.uuid4().hex
    made.mkdir()
    return made


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_written_and_read(s3_server: dict[str, str], folder: Path, kind: str) -> None:
    made = session({"execution.runtime-mode": "streaming", "execution.checkpointing.interval": "100 ms"})
    secret = s3_server["AWS_SECRET_ACCESS_KEY"]
    made.execute_sql(
        "CREATE TABLE numbers (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', "
        "'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '2000')"
    )
    made.execute_sql(
        f"CREATE TABLE t (a INT, p INT) PARTITIONED BY (p) WITH ({clause(kind, s3_server, folder, secret)})"
    )
    made.execute_sql("INSERT INTO t SELECT a, a % 2 FROM numbers").wait()
    batch = session()
    batch.execute_sql(f"CREATE TABLE t WITH ({clause(kind, s3_server, folder, secret)})")
    assert answer(batch, "SELECT COUNT(*), COUNT(DISTINCT a), MAX(a) FROM t WHERE p = 1") == [(1000, 1000, 1999)]
    batch.execute_sql("INSERT OVERWRITE t VALUES (7, 1)").wait()
    assert answer(batch, "SELECT COUNT(*), MIN(a) FROM t WHERE p = 1") == [(1, 7)]
    assert answer(batch, "SELECT COUNT(*) FROM t") == [(1001,)]
    shown = str(answer(batch, "SHOW CREATE TABLE t"))
    assert secret not in shown


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_wrong_secret(s3_server: dict[str, str], folder: Path, kind: str) -> None:
    made = session()
    made.execute_sql(f"CREATE TABLE t (a INT) WITH ({clause(kind, s3_server, folder, 'wrong-secret-wrong')})")
    with pytest.raises(FlowSqlError) as told:
        made.execute_sql("INSERT INTO t VALUES (1)").wait()
    assert "wrong-secret" not in told.value.render()
    assert "t'" in told.value.message


def test_delta_by_the_sessions_options(s3_server: dict[str, str], folder: Path) -> None:
    made = session(
        {
            "s3.endpoint": s3_server["S3_ENDPOINT"],
            "s3.access-key": s3_server["AWS_ACCESS_KEY_ID"],
            "s3.secret-key": s3_server["AWS_SECRET_ACCESS_KEY"],
        }
    )
    path = f"s3://{s3_server['S3_BUCKET']}/{folder.name}/t"
    made.execute_sql(f"CREATE TABLE t (a INT) WITH ('connector' = 'delta', 'table-path' = '{path}')")
    made.execute_sql("INSERT INTO t VALUES (1)").wait()
    assert answer(made, "SELECT * FROM t") == [(1,)]
