"""vkml.composites against PyTorch's functions of the same names, value and gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import check, exact
from composite_cases import CALLS, V
from torch_agreement import assert_agrees, torch
from vkml import composites


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize(
    ("name", "call", "arrays"),
    CALLS,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(CALLS)],
)
def test_composites(
    name: str, call: Callable[..., Any], arrays: list[np.ndarray], device: object
) -> None:
    gradients = any(np.issubdtype(array.dtype, np.floating) for array in arrays)
    assert_agrees(
        lambda *x: call(vkml, *x),
        lambda *x: call(torch, *x),
        arrays,
        device,
        gradients=gradients,
    )


def test_powers_of_a_vector(device: object) -> None:
    check(vkml.vander, np.vander, V, device)
    check(lambda v: vkml.vander(v, 3, True), lambda a: np.vander(a, 3, True), V, device)


def test_a_diagonal_is_a_view(device: object) -> None:
    x = vkml.zeros(3, 3, device=device)
    line = vkml.diagonal(x, 1)
    line += 2
    assert x.tolist() == [[0, 2, 0], [0, 0, 2], [0, 0, 0]]
    x.fill_(5)
    assert line.tolist() == [5, 5]


def test_every_function_is_compared(device: object) -> None:
    plain = {
        "get_default_dtype",
        "is_floating_point",
        "is_nonzero",
        "is_same_size",
        "is_tensor",
        "numel",
    }
    plain |= {"randint_like", "scalar_tensor", "vander"}
    assert {name for name, _, _ in CALLS} | plain == set(composites.__all__)
    assert all(getattr(vkml, name).__doc__ for name in composites.__all__)
    x = vkml.ones(2, 3, device=device)
    assert (vkml.numel(x), vkml.is_tensor(x), vkml.is_tensor(1)) == (6, True, False)
    assert vkml.is_floating_point(x)
    assert not vkml.is_floating_point(x > 0)
    assert vkml.as_tensor(x) is x
    assert vkml.is_same_size(x, x + 1)
    assert not vkml.is_same_size(x, x.T)
    assert vkml.is_nonzero(x[0, :1])
    assert not vkml.is_nonzero(x[0, 0] - 1)
    scalar = vkml.scalar_tensor(3, device=device)
    assert (scalar.item(), scalar.dtype, scalar.device) == (3.0, vkml.float32, device)
    drawn = vkml.randint_like(x, 2, 5)
    assert (drawn.shape, drawn.dtype, drawn.device) == (x.shape, x.dtype, x.device)
    assert set(exact(vkml.randint_like(vkml.ones(500, device=device), 2, 5))) == {2, 3, 4}
    assert vkml.randint_like(x, 1, dtype=vkml.int32).tolist() == [[0] * 3] * 2


def test_what_does_not_fit_is_said() -> None:
    x = vkml.ones(2, 3)
    for call in (
        lambda: vkml.t(vkml.ones(1, 2, 3)),
        lambda: vkml.hsplit(x, 2),
        lambda: vkml.dsplit(x, 1),
        lambda: vkml.is_nonzero(x),
        lambda: vkml.combinations(x),
        lambda: vkml.gradient(x, edge_order=2),
        lambda: vkml.pdist(x[0]),
        lambda: vkml.kron(vkml.ones(1, 1, 1), x),
        lambda: vkml.cross(vkml.ones(2), vkml.ones(2)),
    ):
        with pytest.raises(vkml.ShapeError, match=r"^\[\w+\] "):
            call()


def test_integrals_of_integers_are_floats(device: object) -> None:
    y = vkml.tensor([100, 200, 255], dtype=vkml.uint8, device=device)
    assert vkml.trapezoid(y).tolist() == 377.5
    assert vkml.cumulative_trapezoid(y).tolist() == [150, 377.5]
    large = vkml.tensor([2**31 - 1] * 2, dtype=vkml.int32, device=device)
    assert vkml.trapezoid(large).item() == 2.0**31
