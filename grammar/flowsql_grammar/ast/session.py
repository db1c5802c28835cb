"""Statements about the session: options, what is in use, modules, jars, calls of procedures, jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.call import FunctionCall
    from flowsql_grammar.ast.ddl import Option


class Set(Node):
    """``SET 'k' = 'v'``; both None for the bare SET, which lists."""

    key: str | None = None
    value: str | None = None


class Reset(Node):
    """``RESET 'k'``; None for all."""

    key: str | None = None


class UseCatalog(Node):
    """``USE CATALOG c``."""

    name: Name


class UseDatabase(Node):
    """``USE [catalog.]database``."""

    name: Identifier


class UseModules(Node):
    """``USE MODULES a, b``."""

    names: tuple[Name, ...]


class LoadModule(Node):
    """``LOAD MODULE m [WITH (...)]``."""

    name: Name
    options: tuple[Option, ...] = ()


class UnloadModule(Node):
    """``UNLOAD MODULE m``."""

    name: Name


class AddJar(Node):
    """``ADD JAR 'path'``."""

    path: str


class RemoveJar(Node):
    """``REMOVE JAR 'path'``."""

    path: str


class Call(Node):
    """``CALL procedure(args)``."""

    call: FunctionCall


class StopJob(Node):
    """``STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]``."""

    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False
