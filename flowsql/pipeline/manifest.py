"""``flowsql.toml``: what a project says of itself. See ``docs/projects.md``; why it looks so: ADR 033."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from flowsql.pipeline.place import Place
from flowsql.pipeline.toml_places import Keys, key_places, not_toml
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.record import record
from flowsql_core.span import Source, Span

MANIFEST: Final = "flowsql.toml"

_TOP: Final = ("project", "options", "variables", "profiles")
_PROJECT: Final = ("name", "sql", "tests", "profile")
_PROFILE: Final = ("options", "variables", "sources", "targets")


@record
class Setting:
    """A key with its text."""

    key: str
    value: str
    place: Place


@record
class Overlay:
    """WITH options that a profile gives a table: with a ``connector`` all of them, else some beside those in SQL."""

    table: str
    options: tuple[Setting, ...]
    place: Place

    @property
    def replaces(self) -> bool:
        """Whether nothing is left of the options in SQL."""
        return any(option.key == "connector" for option in self.options)


@record
class Profile:
    """What holds beside the project's own when the profile is chosen."""

    name: str
    options: tuple[Setting, ...]
    variables: tuple[Setting, ...]
    sources: tuple[Overlay, ...]
    targets: tuple[Overlay, ...]


@record
class Manifest:
    """A ``flowsql.toml`` that was read. ``sql`` and ``tests``: patterns of paths, below the folder of the file."""

    name: str
    sql: tuple[Setting, ...]
    tests: tuple[Setting, ...]
    default_profile: Setting | None
    options: tuple[Setting, ...]
    variables: tuple[Setting, ...]
    profiles: tuple[Profile, ...]

    def profile(self, name: str, place: Place | None = None) -> Profile:
        """The profile of a name.

        Raises:
            BindError: there is none; at ``place`` if the file itself names it.
        """
        found = next((profile for profile in self.profiles if profile.name == name), None)
        if found is not None:
            return found
        names = [profile.name for profile in self.profiles]
        hint = did_you_mean(name, names) or (f"its profiles are {', '.join(names)}" if names else "it has no profiles")
        message = f"{MANIFEST} has no profile '{name}'."
        raise BindError("no-profile", message, hint=hint) if place is None else place.error("no-profile", message, hint)


def read_manifest(folder: Path) -> Manifest | None:
    """The ``flowsql.toml`` of a folder; None where there is none.

    Raises:
        BindError: it is not TOML, or holds a key or a value that has no place there; with file, line and key.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BindError("bad-project-file", f"'{path}' is not UTF-8 text (byte {error.start}).") from None
    return parse_manifest(Source(text, MANIFEST), folder.name)


def parse_manifest(source: Source, name: str) -> Manifest:
    """The manifest in a text; ``name``: of a project that gives itself none. Raises as :func:`read_manifest`."""
    try:
        content = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise not_toml(source, error) from None
    return _Reader(source, content).manifest(name)


class _Reader:
    def __init__(self, source: Source, content: Mapping[str, Any]) -> None:
        self._source = source
        self._content = content
        self._places = key_places(source.text)

    def manifest(self, name: str) -> Manifest:
        self._check_keys((), self._content, _TOP)
        project = self._table("project")
        self._check_keys(("project",), project, _PROJECT)
        default = self._text(("project", "profile"), project.get("profile"))
        names = self._table("profiles")
        made = Manifest(
            name if "name" not in project else self._text(("project", "name"), project["name"]) or name,
            self._patterns("sql", project, "**/*.sql"),
            self._patterns("tests", project, "**/*.test.sql"),
            None if default is None else Setting("profile", default, self._place(("project", "profile"))),
            self._settings(("options",)),
            self._settings(("variables",)),
            tuple(self._profile(each) for each in names),
        )
        if made.default_profile is not None:
            made.profile(made.default_profile.value, made.default_profile.place)
        return made

    def _profile(self, name: str) -> Profile:
        path = ("profiles", name)
        if not name.replace("-", "").replace("_", "").isalnum():
            raise self._place(path).error(
                "bad-project-file", f"'{name}' is no name of a profile", "letters, digits, '-' and '_' may stand there"
            )
        self._check_keys(path, self._table(*path), _PROFILE)
        return Profile(
            name,
            self._settings((*path, "options")),
            self._settings((*path, "variables")),
            self._overlays((*path, "sources")),
            self._overlays((*path, "targets")),
        )

    def _overlays(self, path: Keys) -> tuple[Overlay, ...]:
        tables = self._table(*path)
        return tuple(Overlay(name, self._settings((*path, name)), self._place((*path, name))) for name in tables)

    def _settings(self, path: Keys) -> tuple[Setting, ...]:
        """Keys with dots may be written as tables in each other: both are the same key."""
        return tuple(
            Setting(".".join(keys[len(path) :]), text, self._place(keys))
            for keys, text in self._flat(path, self._table(*path))
        )

    def _flat(self, path: Keys, table: Mapping[str, Any]) -> Iterator[tuple[Keys, str]]:
        for key, value in table.items():
            keys = (*path, key)
            if isinstance(value, dict):
                yield from self._flat(keys, value)
            elif isinstance(value, list):
                yield keys, ";".join(self._scalar(keys, each) for each in value)
            else:
                yield keys, self._scalar(keys, value)

    def _scalar(self, keys: Keys, value: object) -> str:
        match value:
            case bool():
                return str(value).lower()
            case str() | int() | float():
                return str(value)
        raise self._wrong(keys, "a text, a number, true or false", value)

    def _patterns(self, key: str, project: Mapping[str, Any], default: str) -> tuple[Setting, ...]:
        path = ("project", key)
        found = project.get(key, [default])
        patterns = [found] if isinstance(found, str) else found
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            raise self._wrong(path, "a list of patterns of paths", found)
        for pattern in patterns:
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts or not pattern:
                hint = 'patterns begin in the folder of the project, e.g. "sql/**/*.sql"'
                message = f"'{pattern}' does not lead into the project"
                raise self._place(path).error("bad-project-file", message, hint)
        return tuple(Setting(key, pattern, self._place(path)) for pattern in patterns)

    def _table(self, *path: str) -> Mapping[str, Any]:
        found: Any = self._content
        for key in path:
            found = found.get(key, {})
        if not isinstance(found, dict):
            raise self._wrong(path, f"a table: [{'.'.join(path)}]", found)
        return found

    def _text(self, path: Keys, value: object) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(path, "a text", value)

    def _check_keys(self, path: Keys, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                where = f"[{'.'.join(path)}]" if path else MANIFEST
                hint = did_you_mean(key, known) or f"it may hold {', '.join(known)}"
                raise self._place((*path, key)).error("bad-project-file", f"{where} has no key '{key}'", hint)

    def _wrong(self, path: Keys, wanted: str, value: object) -> Exception:
        kinds = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a number"}
        found = kinds.get(type(value), f"a {type(value).__name__}")
        return self._place(path).error("bad-project-file", f"'{'.'.join(path)}' is {found}", f"it takes {wanted}")

    def _place(self, path: Keys) -> Place:
        while path and path not in self._places:
            path = path[:-1]
        return Place(self._source, self._places.get(path, Span(0, 0)))
