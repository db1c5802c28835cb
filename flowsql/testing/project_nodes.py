"""``SCRIPT PROJECT`` and ``SCRIPT NODE t``: a test plays statements of the project that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.pipeline.folder import ProjectFolder
from flowsql.pipeline.order import ordered_definitions, ordered_nodes
from flowsql.pipeline.project import read_project
from flowsql.pipeline.selection import selected
from flowsql.table.session.environment import TableEnvironment
from flowsql.testing.play import Play
from flowsql_grammar import ast


def play_nodes(play: Play, opened: ProjectFolder, names: Sequence[str]) -> None:
    """All definitions of a project take effect, and the nodes that are named are played; of no names all.

    Args:
        play: of the test; options that files of the project set hold in all of it.
        opened: the project.
        names: as those of ``flowsql run --select``.

    Raises:
        FlowSqlError: something in the project is wrong, or a name is that of no node.
    """
    configuration = play.environment.configuration
    project = read_project(opened, TableEnvironment.of_configuration(configuration.with_layer()), fills=False)
    order, before = ordered_nodes(project)
    wanted = selected(names, order, before, whole_tables=False)
    for definition in ordered_definitions(project):
        play.define(definition.statement, definition.place.source)
    for node in order:
        if node not in wanted:
            continue
        for key, value in node.settings.items():
            if configuration.text(key) != value:
                configuration.set(key, value)
        if isinstance(node.statement, ast.CreateTable):
            play.insert_of(node.statement, node.place.source)
        else:
            play.run(node.statement, node.place.source)
