"""Compile all kernels of packages ahead of their first use.

``python -m flowsql_compute.compiler.prepare`` compiles what the cache does not hold yet, each kernel in the first
process that is free, so that the first query with state need not.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import time
from collections.abc import Iterator, Sequence

from flowsql_compute.compiler import object_cache
from flowsql_compute.compiler.declare import Kernel

PACKAGES = ("flowsql_compute.kernels", "flowsql_runtime.kernels")


def kernels_of(package: str) -> Iterator[Kernel]:
    """The kernels that the modules of a package, and of those in it, declare."""
    folders = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folders, package + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Kernel) and value.__module__ == module.name:
                yield value


def named(place: str) -> Iterator[Kernel]:
    """The kernels of a package, or the one of ``module:kernel``."""
    module, colon, name = place.partition(":")
    return iter([getattr(importlib.import_module(module), name)]) if colon else kernels_of(place)


def missing(places: Sequence[str]) -> list[Kernel]:
    """Kernels whose objects are not in the cache, those of the longest code first."""
    found = [kernel for place in places for kernel in named(place) if object_cache.load(kernel) is None]
    return sorted(found, key=lambda kernel: -len(kernel.function.__code__.co_code))


def compile_one(module: str, name: str) -> bool:
    """Compile a kernel and keep its object; whether a folder took it."""
    from flowsql_compute.compiler.emit import emit

    kernel = getattr(importlib.import_module(module), name)
    return object_cache.store(kernel, emit(kernel)) is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; the exit status is 1 when objects could not be kept."""
    parser = argparse.ArgumentParser(prog="python -m flowsql_compute.compiler.prepare", description=__doc__)
    parser.add_argument("places", nargs="*", default=PACKAGES, help="packages with kernels, or module:kernel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a processor)")
    chosen = parser.parse_args(arguments)
    start = time.perf_counter()
    wanted = missing(chosen.places)
    if not wanted:
        print("all kernels are compiled")
        return 0
    modules, names = [kernel.__module__ for kernel in wanted], [kernel.__name__ for kernel in wanted]
    if chosen.jobs == 1:
        kept = list(map(compile_one, modules, names))
    else:
        # Imported here: a process that compiles one kernel starts faster.
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(min(chosen.jobs, len(wanted)), get_context("spawn")) as pool:
            kept = list(pool.map(compile_one, modules, names))
    if not all(kept):
        print("no folder takes the compiled kernels; set FLOWSQL_KERNEL_CACHE")
        return 1
    print(f"{len(wanted)} kernels compiled in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
