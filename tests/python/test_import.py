"""`import vkml` is light: no NumPy, no Vulkan loader needed, under 0.1 s."""

import ast
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vkml


def python(code, **environment):
    """Runs code in a fresh interpreter that finds the same vkML; returns what it prints."""
    path = str(Path(vkml.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    return result.stdout.strip()


def test_import_brings_in_no_numpy():
    code = "import sys, vkml, vkml.nn, vkml.optim, vkml.data; print('numpy' in sys.modules)"
    assert python(code) == "False"


def test_type_checkers_see_the_names_that_are_loaded_at_first_use():
    tree = ast.parse(Path(vkml.__file__).read_text())
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = {name: f"vkml.{module}" for name, module in vkml._FROM_SUBMODULE.items()}
    assert imported == lazy | dict.fromkeys(vkml._SUBMODULES, "vkml")
    for name, module in lazy.items():
        assert getattr(vkml, name) is getattr(importlib.import_module(module), name)


def test_lists_and_arithmetic_need_no_numpy():
    code = "import sys, vkml; print((vkml.tensor([1.0]) * 2).tolist(), 'numpy' in sys.modules)"
    assert python(code) == "[2.0] False"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads an ELF symbol table")
def test_the_module_shows_no_symbol_of_the_libraries_inside_it():
    listing = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=just-symbols", vkml._vkml.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listing.stdout.split() == ["PyInit__vkml"]


def test_import_takes_less_than_a_tenth_of_a_second():
    def shortest(code):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            python(code)
            times.append(time.perf_counter() - start)
        return min(times)

    assert shortest("import vkml") - shortest("pass") < 0.1


def test_import_and_exit_without_use():
    assert python("import vkml") == ""


@pytest.mark.parametrize(
    "made", ["vkml.rand(64, 64, device='{0}')", "vkml.tensor([[1.0] * 64] * 64, device='{0}')"]
)
def test_exit_while_a_driver_compiles(device, made, tmp_path):
    """With no kernel of the driver's in its cache, as at the first run on a machine."""
    code = f"import vkml; x = {made.format(device)}; y = (x @ x).softmax(-1).realize()"
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        assert python(code, XDG_CACHE_HOME=str(folder)) == ""


@pytest.mark.parametrize("name", ["nn", "optim", "data", "save", "load"])
def test_parts_load_at_first_use(name):
    assert python(f"import vkml; print(vkml.{name}.__name__.rpartition('.')[2])") == name


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = vkml.nothing


def test_waiting_threads_sleep_early_unless_the_user_says_otherwise(monkeypatch):
    code = "import os, vkml; print(os.environ.get('GOMP_SPINCOUNT'))"
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    assert python(code) == "1000"
    assert python(code, GOMP_SPINCOUNT="7") == "7"
    assert python(code, OMP_WAIT_POLICY="active") == "None"
