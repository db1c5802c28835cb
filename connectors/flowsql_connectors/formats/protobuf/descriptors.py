"""Types of messages by name: from files of descriptors, or from modules that ``protoc`` generated."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flowsql_core.config import option
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTOR_FILES = option(
    "protobuf.descriptor-files",
    str,
    "",
    "Files in which format protobuf finds types of messages, semicolons between them: "
    "protoc --include_imports --descriptor_set_out.",
)


def message_type(name: str, files: str) -> Any:
    """The descriptor of a type of messages.

    Args:
        name: ``package.Message`` as the ``.proto`` file says, the name of the class that Java would have
            (``java_package.Outer$Message``), or where Python finds it: ``module_pb2.Message``.
        files: of descriptors, semicolons between them.

    Raises:
        BindError: there is no such type.
        NotSupportedYetError: protobuf is not installed.
    """
    known = _types_in(tuple(part.strip() for part in files.split(";") if part.strip()))
    found = known.get(name)
    if found is not None:
        return found
    module, _, message = name.rpartition(".")
    try:
        imported = getattr(importlib.import_module(module), message, None) if module else None
    except ImportError:
        imported = None
    if imported is None or not hasattr(imported, "DESCRIPTOR"):
        raise BindError(
            "no-such-message",
            f"get {name} descriptors error! There is no type of messages of this name.",
            hint=did_you_mean(name, list(known))
            or f"'{DESCRIPTOR_FILES.key}' names files that protoc made: "
            "protoc --include_imports --descriptor_set_out=FILE",
        )
    return imported.DESCRIPTOR


@lru_cache(maxsize=16)
def _types_in(files: tuple[str, ...]) -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise NotSupportedYetError(
            "format 'protobuf' without protobuf", hint="pip install flowsql[protobuf]"
        ) from error
    pool = descriptor_pool.DescriptorPool()
    protos: dict[str, Any] = {}
    for path in files:
        if not os.path.isfile(path):
            raise BindError("invalid-option-value", f"File {path} of '{DESCRIPTOR_FILES.key}' does not exist.")
        with open(path, "rb") as file:
            try:
                protos.update((one.name, one) for one in descriptor_pb2.FileDescriptorSet.FromString(file.read()).file)
            except DecodeError as error:
                raise BindError(
                    "invalid-option-value", f"File {path} of '{DESCRIPTOR_FILES.key}' holds no descriptors: {error}"
                ) from error
    added: set[str] = set()
    for name in protos:
        _add(name, protos, pool, added)
    return dict(_named(protos.values(), pool))


def _add(name: str, protos: dict[str, Any], pool: Any, added: set[str]) -> None:
    """A file behind those that it imports; Google's own may be left out of the files."""
    if name in added:
        return
    added.add(name)
    proto = protos.get(name)
    if proto is None:
        if not name.startswith("google/protobuf/"):
            raise BindError(
                "invalid-option-value",
                f"The files of '{DESCRIPTOR_FILES.key}' import {name}, which is in none of them.",
                hint="protoc --include_imports puts it in",
            )
        module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        return
    for other in proto.dependency:
        _add(other, protos, pool, added)
    pool.AddSerializedFile(proto.SerializeToString())


def _named(protos: Any, pool: Any) -> Iterator[tuple[str, Any]]:
    for proto in protos:
        package = proto.options.java_package or proto.package
        outer = proto.options.java_outer_classname or _camel_case(proto.name)
        names = [message.name for message in proto.message_type]
        if outer in names:
            outer += "OuterClass"
        prefix = f"{package}." if package else ""
        for message in proto.message_type:
            full = f"{proto.package}.{message.name}" if proto.package else message.name
            java = prefix + (message.name if proto.options.java_multiple_files else f"{outer}${message.name}")
            yield from _with_nested(pool.FindMessageTypeByName(full), java)


def _with_nested(descriptor: Any, java: str) -> Iterator[tuple[str, Any]]:
    yield java, descriptor
    yield descriptor.full_name, descriptor
    for nested in descriptor.nested_types:
        yield from _with_nested(nested, f"{java}${nested.name}")


def _camel_case(path: str) -> str:
    stem = path.rpartition("/")[2].removesuffix(".proto")
    return "".join(part[:1].upper() + part[1:] for part in stem.replace("-", "_").split("_"))
