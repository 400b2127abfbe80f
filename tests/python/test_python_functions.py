"""Every public function of vkml.nn.functional, vkml.linalg and vkml.special against PyTorch.

Values, gradients and second derivatives are compared with PyTorch's in double precision: float32 on
every device, float64 on the CPU. Values in float16 and bfloat16 are compared at operands of their
own precision. A function without a case, without a gradient or a reason for that, or without a
docstring fails here.
"""

import functools
import importlib
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import vkml
from checking import FLOATS, exact, inputs
from function_case import FunctionCase
from python_cases import PYTHON_CASES, SPACES
from torch_agreement import torch

STEP = 1e-5  # of differences in double precision, where PyTorch has no finite second derivative
# Routines of a module that are no part of it, by its name.
NOT_LISTED = {"linalg": {"default_tolerance"}}
ALL_FLOATS = {"float64", "float32", "float16", "bfloat16"}

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def several(result: Any) -> tuple:
    """The results of a function that may return one or more."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def is_float(array: np.ndarray) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def direction(array: np.ndarray) -> np.ndarray:
    """Along what second derivatives are taken."""
    return inputs(array.shape, -1, 1, seed=9).astype(np.float64)


def weights(shape: Sequence[int], place: int) -> np.ndarray:
    """What results are weighted with, so that no part of a gradient cancels."""
    return inputs(tuple(shape), 0.5, 1.5, seed=place).astype(np.float64)


def reference_gradients(case: FunctionCase, arrays: Sequence[np.ndarray]) -> tuple:
    """PyTorch's operands, results, and gradients of a weighted sum of the results."""
    operands = [torch.tensor(array, requires_grad=is_float(array)) for array in arrays]
    results = several(case.expected(*operands))
    leaves = [operand for operand in operands if operand.requires_grad]
    total = sum(
        (result * torch.tensor(weights(result.shape, place))).sum()
        for place, result in enumerate(results)
        if result.is_floating_point()
    )
    gradients = [None] * len(leaves)
    if getattr(total, "requires_grad", False):
        gradients = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    return leaves, results, list(gradients)


def filled(gradient: Any, leaf: Any) -> np.ndarray:
    """A gradient as an array: None is 0."""
    return np.zeros(leaf.shape) if gradient is None else gradient.detach().numpy()


def differences_of_gradients(case: FunctionCase, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The second derivative along `direction`, from PyTorch's first at two places."""
    moved = []
    for step in (STEP, -STEP):
        places = [a + step * direction(a) if is_float(a) else a for a in arrays]
        leaves, _, gradients = reference_gradients(case, places)
        moved.append([filled(g, leaf) for g, leaf in zip(gradients, leaves, strict=True)])
    return [(high - low) / (2 * STEP) for high, low in zip(*moved, strict=True)]


@functools.cache
def references(case: FunctionCase) -> tuple:
    """What a case gives in PyTorch: results, first and second gradients, the error of the last."""
    arrays = [a.astype(np.float64) if is_float(a) else a for a in case.arrays]
    leaves, results, gradients = reference_gradients(case, arrays)
    first = [filled(g, leaf) for g, leaf in zip(gradients, leaves, strict=True)]
    try:
        along = sum(
            (g * torch.tensor(direction(g.detach().numpy()))).sum()
            for g in gradients
            if g is not None
        )
        second = [None] * len(leaves)
        if getattr(along, "requires_grad", False):
            second = torch.autograd.grad(along, leaves, allow_unused=True)
        second = [filled(g, leaf) for g, leaf in zip(second, leaves, strict=True)]
    except RuntimeError:  # PyTorch has none
        second = [np.full(g.shape, np.nan) for g in first]
    error = 0.0
    if not all(np.isfinite(g).all() for g in second):
        second, error = differences_of_gradients(case, arrays), 1e-7
    values = [result.detach().numpy() for result in results]
    return values, first, second, error


def assert_near(actual: Any, expected: np.ndarray, step: float, what: str) -> None:
    """Compares by the largest finite magnitude of `expected`, or 1 if that is smaller."""
    array = exact(actual) if isinstance(actual, vkml.Tensor) else actual
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    assert array.shape == expected.shape, what
    np.testing.assert_allclose(array, expected, rtol=0, atol=step * scale, err_msg=what)


def tensors_of(case: FunctionCase, dtype: Any, device: Any, requires_grad: bool) -> list:
    return [
        vkml.tensor(a, device=device).to(dtype).requires_grad_(requires_grad)
        if is_float(a)
        else vkml.tensor(a, device=device)
        for a in case.arrays
    ]


def compare(case: FunctionCase, dtype: Any, device: Any, has_second: bool = True) -> None:
    """Checks results, gradients and, unless left out, second derivatives of a case."""
    values, first, second, error = references(case)
    is_double = dtype == vkml.float64 and case.double_units is not None
    units = case.double_units if is_double else case.units
    step = units * 2.0 ** (1 - FLOATS[dtype][0])
    tensors = tensors_of(case, dtype, device, True)
    results = several(case.function(*tensors))
    assert len(results) == len(values)
    total = None
    for number, (result, expected) in enumerate(zip(results, values, strict=True)):
        if not is_float(expected):
            np.testing.assert_array_equal(exact(result), expected)
            continue
        assert result.dtype == dtype
        assert_near(result, expected, step, f"result {number}")
        weight = vkml.tensor(weights(result.shape, number), dtype=dtype, device=device)
        part = (result * weight).sum()
        total = part if total is None else total + part
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    if (
        total is not None and total.requires_grad
    ):  # else steps: what has no gradient here has one of 0 there
        total.backward(create_graph=has_second)
    gradients = [leaf.grad for leaf in leaves]
    for number, (mine, expected) in enumerate(zip(gradients, first, strict=True)):
        mine = np.zeros(expected.shape) if mine is None else mine
        assert_near(mine, expected, step, f"gradient {number}")
    if case.no_second or not has_second:
        return
    along = sum(
        (g * vkml.tensor(direction(a), dtype=dtype, device=device)).sum()
        for g, a in zip(gradients, first, strict=True)
        if g is not None
    )
    for leaf in leaves:
        leaf.grad = None
    if getattr(along, "requires_grad", False):
        along.backward()
    for number, (leaf, expected) in enumerate(zip(leaves, second, strict=True)):
        mine = np.zeros(expected.shape) if leaf.grad is None else leaf.grad
        assert_near(mine, expected, max(step, error), f"second gradient {number}")


def parameters(cases: Sequence[FunctionCase]) -> list:
    return [pytest.param(case, id=str(case)) for case in cases]


ON_ALL = [case for case in PYTHON_CASES if not case.on_cpu_alone]
ON_CPU = [case for case in PYTHON_CASES if case.on_cpu_alone]
FIRST = {case.key: case for case in reversed(PYTHON_CASES)}
HALVES = [case for case in PYTHON_CASES if "float16" in case.dtypes]


@pytest.mark.parametrize("case", parameters(ON_ALL))
def test_float32(case: FunctionCase, device: object) -> None:
    # Every kernel costs a software driver a tenth of a second, and second derivatives have many.
    has_second = device == vkml.cpu or case in FIRST.values()
    compare(case, vkml.float32, device, has_second)


@pytest.mark.parametrize("case", parameters(ON_CPU))
def test_float32_of_factorisations(case: FunctionCase) -> None:
    compare(case, vkml.float32, vkml.cpu)


@pytest.mark.parametrize("case", parameters(PYTHON_CASES))
def test_float64(case: FunctionCase) -> None:
    compare(case, vkml.float64, vkml.cpu)


@pytest.mark.parametrize("dtype", [vkml.float16, vkml.bfloat16], ids=str)
@pytest.mark.parametrize("case", HALVES, ids=str)
def test_halves(case: FunctionCase, dtype: Any) -> None:
    tensors = tensors_of(case, dtype, vkml.cpu, False)
    operands = [torch.tensor(exact(tensor)) for tensor in tensors]
    results, expected = several(case.function(*tensors)), several(case.expected(*operands))
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if not wanted.is_floating_point():
            np.testing.assert_array_equal(exact(result), wanted.numpy())
            continue
        assert result.dtype == dtype
        step = case.half_units * 2.0 ** (1 - FLOATS[dtype][0])
        assert_near(result, wanted.numpy(), step, f"result {number}")


@pytest.mark.parametrize("case", ON_CPU, ids=str)
def test_what_other_devices_and_dtypes_refuse(case: FunctionCase, device: object) -> None:
    if device != vkml.cpu:
        with pytest.raises(vkml.UnsupportedError, match=r"^\[\w+\].*vkml\.cpu"):
            case.function(*tensors_of(case, vkml.float32, device, False))
        return
    for dtype in (vkml.float16, vkml.bfloat16):
        with pytest.raises(vkml.DTypeError, match=r"^\[\w+\] "):
            case.function(*tensors_of(case, dtype, device, False))


@pytest.mark.parametrize("space", SPACES)
def test_every_function_has_a_case_a_gradient_and_a_docstring(space: str) -> None:
    module = importlib.import_module(f"vkml.{space}")
    names = set(module.__all__)
    defined = {
        name
        for name, value in vars(module).items()
        if inspect.isroutine(value) and not name.startswith("_")
        if value.__module__.startswith("vkml")
    }
    assert defined - names == NOT_LISTED.get(space, set())
    cases = [case for case in PYTHON_CASES if case.space == space]
    assert {case.name for case in cases} == names
    with_gradient = {case.name for case in cases if any(g.any() for g in references(case)[1])}
    without = {case.name for case in cases if case.no_gradient}
    assert with_gradient == names - without
    assert [name for name in names if not inspect.getdoc(getattr(module, name))] == []


def test_cases_are_told_apart() -> None:
    names = [str(case) for case in PYTHON_CASES]
    assert len(set(names)) == len(names)
    assert {dtype for case in PYTHON_CASES for dtype in case.dtypes} == ALL_FLOATS
