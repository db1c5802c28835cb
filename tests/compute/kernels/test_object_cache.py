"""Objects on disk: found again without Numba, rebuilt when damaged or outdated, safe among processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = """
from __future__ import annotations
from flowsql_compute.compiler.declare import device, kernel
ADDEND = 1
@device
def more(x):
    return x + ADDEND
@kernel("int64(int64)")
def work(x):
    '''Doc.'''
    return more(x) * 2
"""
PROGRAM = "import sys, some_kernels; print(some_kernels.work(20), 'numba' in sys.modules)"


def start(folder: pathlib.Path, cache: pathlib.Path | None, **extra: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), **extra}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("FLOWSQL_KERNEL_CACHE", None)
    if cache is not None:
        environment["FLOWSQL_KERNEL_CACHE"] = str(cache)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answer(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.split()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "some_kernels.py").write_text(SOURCE)
    return tmp_path / "source"


def test_the_second_process_loads_what_two_first_ones_stored(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    both = [start(folder, tmp_path / "cache") for _ in range(2)]
    assert ["42", "True"] in [answer(process) for process in both]
    files = list((tmp_path / "cache").iterdir())
    assert [file.name.startswith("some_kernels.work.") for file in files] == [True]
    assert answer(start(folder, tmp_path / "cache")) == ["42", "False"]

    whole = files[0].read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        files[0].write_bytes(damaged)
        assert answer(start(folder, tmp_path / "cache")) == ["42", "True"]
        assert files[0].read_bytes()[:40] == whole[:40]
    assert answer(start(folder, tmp_path / "cache")) == ["42", "False"]


def test_a_changed_constant_or_device_function_is_compiled_anew(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert answer(start(folder, tmp_path / "cache")) == ["42", "True"]
    module = folder / "some_kernels.py"
    module.write_text(SOURCE.replace("ADDEND = 1", "ADDEND  =  2"))
    assert answer(start(folder, tmp_path / "cache")) == ["44", "True"]
    module.write_text(SOURCE.replace("x + ADDEND", "x - ADDEND  # longer"))
    assert answer(start(folder, tmp_path / "cache")) == ["38", "True"]
    module.write_text("# A line that moves all others.\n" + SOURCE.replace("x + ADDEND", "x - ADDEND"))
    assert answer(start(folder, tmp_path / "cache")) == ["38", "False"]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_objects_lie_beside_the_bytecode_or_in_the_users_cache(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    (folder / "__pycache__").write_text("no folder: nothing can be written here")
    assert answer(start(folder, None, **home)) == ["42", "True"]
    assert len(list((tmp_path / "home" / "flowsql" / "kernels").iterdir())) == 1
    assert answer(start(folder, None, **home)) == ["42", "False"]
    (folder / "__pycache__").unlink()
    (tmp_path / "home" / "flowsql" / "kernels").rename(tmp_path / "gone")
    assert answer(start(folder, None, **home)) == ["42", "True"]
    assert len(list((folder / "__pycache__").glob("*.kernel"))) == 1
    assert answer(start(folder, None, **home)) == ["42", "False"]


def test_without_any_folder_kernels_still_run(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert answer(start(folder, tmp_path / "file")) == ["42", "True"]


def test_prepare_compiles_what_is_missing(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    package = folder / "some_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text(SOURCE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "FLOWSQL_KERNEL_CACHE": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "flowsql_compute.compiler.prepare", "--jobs", "1", "some_package"]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first.startswith("1 kernels compiled")
    assert second == "all kernels are compiled\n"
    assert len(list((tmp_path / "cache").glob("some_package.inner.work.*"))) == 1


AHEAD = """
import sys, some_kernels
from flowsql_compute.compiler import other_process as ahead
ahead.compile_ahead(some_kernels.work)
ahead.compile_ahead(some_kernels.work)
assert len(ahead._started) == int(sys.argv[1])
print(some_kernels.work(20), "numba" in sys.modules)
ahead.compile_ahead(some_kernels.work)
assert not ahead._started
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor compiles nothing aside")
def test_another_process_compiles_ahead(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "FLOWSQL_KERNEL_CACHE": str(tmp_path / "cache"),
    }

    def run(program: str, started: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", program, str(started)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run(AHEAD, 1) == ["42", "False"]
    assert run(AHEAD, 0) == ["42", "False"]
    # Where nothing can be kept, the one who needs it compiles.
    (tmp_path / "file").touch()
    environment["FLOWSQL_KERNEL_CACHE"] = str(tmp_path / "file")
    assert run(AHEAD, 1) == ["42", "True"]


SHARED_NAMES = """
from __future__ import annotations
from flowsql_compute.compiler.declare import device, kernel
@device
def step(x):
    return x * 3 + 1
@device
def other_step(x):
    return x * 5 - 1
@kernel("int64(int64, int64)")
def steps(x, times):
    for i in range(times):
        x = step(x)
    return x
others = steps.variant("others", step=other_step)
"""


def test_objects_of_variants_stand_beside_each_other(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_kernels.py").write_text(SHARED_NAMES)
    cache = tmp_path / "cache"
    for calls, printed in (
        # Compiled in processes of their own, the bodies of both have the same symbols.
        ("some_kernels.steps(1, 3)", ["40", "True"]),
        ("some_kernels.others(1, 3)", ["94", "True"]),
        ("some_kernels.steps(1, 3), some_kernels.others(1, 3), some_kernels.steps(1, 3)", ["40", "94", "40", "False"]),
    ):
        program = f"import sys, some_kernels; print({calls}, 'numba' in sys.modules)"
        monkeypatch.setattr(sys.modules[__name__], "PROGRAM", program)
        assert answer(start(tmp_path, cache)) == printed


def test_a_module_that_is_loaded_again_declares_its_kernels_again(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    module = folder / "some_kernels.py"
    changed = tmp_path / "changed.py"
    changed.write_text(SOURCE.replace("ADDEND = 1", "ADDEND = 12"))
    program = (
        "import importlib, shutil, some_kernels; first = some_kernels.work;"
        f" print(first(20)); shutil.copy({str(changed)!r}, {str(module)!r});"
        " again = importlib.reload(some_kernels).work; print(again(20), first(20))"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "PROGRAM", program)
        assert answer(start(folder, tmp_path / "cache")) == ["42", "64", "42"]
