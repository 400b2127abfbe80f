"""docs/accuracy.md is what rows, cases and measurements say; no measurement exceeds its bound."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

import vkml
from composite_cases import COMPOSITE_CASES, RECURRENT_CASES
from elementwise_references import stated_rows
from function_case import FunctionCase
from python_cases import PYTHON_CASES
from structural_cases import CASES

SCRIPT = Path(__file__).parents[2] / "scripts" / "accuracy.py"


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    """The script, as a module."""
    specification = importlib.util.spec_from_file_location("accuracy", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    before = list(sys.path)
    specification.loader.exec_module(module)
    sys.path[:] = before
    return module


BOUNDS = {row.name: row.ulps for row in stated_rows()}
BOUNDS |= {case.name: 0.0 for case in CASES}
for case in CASES:
    BOUNDS[case.name] = max(BOUNDS[case.name], case.units)
OTHER_CASES = [*COMPOSITE_CASES, *RECURRENT_CASES]
for case in [*PYTHON_CASES, *OTHER_CASES]:
    BOUNDS[case.key] = max(BOUNDS.get(case.key, 0.0), case.units)
ON_CPU_ALONE = {case.key for case in PYTHON_CASES} - {
    case.key for case in PYTHON_CASES if not case.on_cpu_alone
}


@pytest.mark.skipif(
    os.environ.get("VKML_REFERENCE") == "1", reason="the reference takes other dtypes"
)
def test_the_page_is_current(accuracy: ModuleType) -> None:
    text = accuracy.PAGE.read_text()
    assert text == accuracy.page(), "write it again: python scripts/accuracy.py write"


def test_every_operator_was_measured_and_keeps_its_bound(accuracy: ModuleType) -> None:
    measured = accuracy.read_measured()
    machines = measured.pop(accuracy.MACHINE)
    assert all(machines.values())
    command = "run scripts/accuracy.py measure cpu=cpu lavapipe=vulkan:0"
    assert set(measured) == set(BOUNDS), command
    for name, errors in measured.items():
        assert errors["cpu"], command
        assert errors["lavapipe"] or name in ON_CPU_ALONE, command
        for column in accuracy.COLUMNS:
            # Half a unit is what rounding costs where a bound says less.
            assert float(errors[column] or 0) <= max(BOUNDS[name], 0.5), (name, column)


@pytest.mark.parametrize("key", ["nn.functional.cross_entropy", "linalg.qr", "special.zeta"])
def test_measuring_functions(accuracy: ModuleType, key: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    cases = [case for case in PYTHON_CASES if case.key == key]
    errors = [accuracy.function_error(case, vkml.cpu) for case in cases]
    assert 0 < max(errors) <= BOUNDS[key]


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize("case", OTHER_CASES, ids=str)
def test_composites_and_layers_keep_their_bound(
    accuracy: ModuleType, case: FunctionCase, device: object
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert accuracy.function_error(case, device) <= case.units


def test_every_operator_that_draws_has_a_line(accuracy: ModuleType) -> None:
    """Those that take a generator, or another tensor's shape."""
    documented = {name: getattr(vkml._vkml, name).__doc__ or "" for name in vars(vkml._vkml)}
    draws = {name for name, text in documented.items() if "_RandomStream" in text.split("\n")[0]}
    assert len(draws) > 10
    assert draws <= set(accuracy.RANDOM)


def test_errors_are_rounded_up(accuracy: ModuleType) -> None:
    numbers = [0, 0.5, 0.1234, 1.21, 2.999, 19.01, 123.0]
    rounded = [accuracy.rounded(number) for number in numbers]
    assert rounded == ["0", "0.5", "0.13", "1.3", "3", "20", "130"]


@pytest.mark.parametrize("name", ["exp", "add", "bitwise_and", "isnan"])
def test_measuring_rows(accuracy: ModuleType, name: str, device: object) -> None:
    row = next(row for row in stated_rows() if row.name == name)
    error = accuracy.elementwise_error(row, device)
    assert error <= row.ulps
    # Half a unit at least, for thousands of points that do not fit float32.
    assert error > 0.4 if name in ("exp", "add") else error == 0


@pytest.mark.parametrize("name", ["sum", "sort", "matmul", "argmax"])
def test_measuring_cases(accuracy: ModuleType, name: str, device: object) -> None:
    errors = [accuracy.structural_error(case, device) for case in CASES if case.name == name]
    assert max(errors) <= BOUNDS[name]
    assert max(errors) > 0 if BOUNDS[name] > 0 else max(errors) == 0
