"""Statements that look at things: SHOW and DESCRIBE."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Identifier, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.ddl import PartitionSpec
    from flowsql_grammar.ast.statement import Delete, Insert, Merge, QueryStatement, Update


class ShowKind(StrEnum):
    """What SHOW lists."""

    CATALOGS = "CATALOGS"
    DATABASES = "DATABASES"
    TABLES = "TABLES"
    VIEWS = "VIEWS"
    MATERIALIZED_TABLES = "MATERIALIZED TABLES"
    FUNCTIONS = "FUNCTIONS"
    USER_FUNCTIONS = "USER FUNCTIONS"
    PROCEDURES = "PROCEDURES"
    COLUMNS = "COLUMNS"
    PARTITIONS = "PARTITIONS"
    MODELS = "MODELS"
    CONNECTIONS = "CONNECTIONS"
    MODULES = "MODULES"
    FULL_MODULES = "FULL MODULES"
    JARS = "JARS"
    JOBS = "JOBS"


class Preposition(StrEnum):
    """The word in front of the place; no difference in meaning."""

    FROM = "FROM"
    IN = "IN"


class ShowLike(Node):
    """``[NOT] LIKE 'pattern'`` or ``ILIKE``, which ignores case."""

    pattern: str
    negated: bool = False
    ignore_case: bool = False


class Show(Node):
    """``SHOW kind [FROM | IN place] [[NOT] LIKE 'p']``; for COLUMNS and PARTITIONS the place is the table."""

    kind: ShowKind
    place: Identifier | None = None
    like: ShowLike | None = None
    partition: PartitionSpec | None = None
    preposition: Preposition | None = None


class ShowOperators(Node):
    """``SHOW OPERATORS IN 'savepoint'``: what a snapshot holds."""

    savepoint: str


class ShowCurrentKind(StrEnum):
    """What SHOW CURRENT tells."""

    CATALOG = "CATALOG"
    DATABASE = "DATABASE"


class ShowCurrent(Node):
    """``SHOW CURRENT CATALOG | DATABASE``."""

    kind: ShowCurrentKind


class ShowCreateKind(StrEnum):
    """What SHOW CREATE writes out."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    MATERIALIZED_TABLE = "MATERIALIZED TABLE"
    CATALOG = "CATALOG"
    MODEL = "MODEL"
    CONNECTION = "CONNECTION"


class ShowCreate(Node):
    """``SHOW CREATE TABLE t``."""

    kind: ShowCreateKind
    name: Identifier


class DescribeKind(StrEnum):
    """What DESCRIBE looks at."""

    TABLE = "TABLE"
    CATALOG = "CATALOG"
    DATABASE = "DATABASE"
    FUNCTION = "FUNCTION"
    MODEL = "MODEL"
    CONNECTION = "CONNECTION"


class Describe(Node):
    """``DESCRIBE [kind] [EXTENDED] name``; a table, view or materialized table has no word for its kind."""

    kind: DescribeKind
    name: Identifier
    extended: bool = False


class DescribeStatement(Node):
    """``DESCRIBE [STATEMENT] query``, or a statement that changes data."""

    statement: QueryStatement | Insert | Update | Delete | Merge


class DescribeJob(Node):
    """``DESCRIBE JOB 'id'``."""

    job_id: str
