"""vkml.composites against PyTorch's functions of the same names, value and gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import check, inputs
from torch_agreement import assert_agrees, torch
from vkml import composites

A, B, ROWS = inputs((3, 4), -2, 2), inputs((3, 4), -2, 2, seed=1), inputs((2, 3, 4), -2, 2)
V, W, X = inputs((4,), -2, 2), inputs((4,), -2, 2, seed=1), np.array([0, 1, 3, 4.5], np.float32)

# (name, call of one module's functions, arrays)
CALLS: list[tuple[str, Callable[..., Any], list[np.ndarray]]] = [
    ("as_tensor", lambda m, a: m.as_tensor(a), [A]),
    ("atleast_1d", lambda m, a: m.atleast_1d(a.sum()), [A]),
    ("atleast_2d", lambda m, a: m.atleast_2d(a), [V]),
    ("block_diag", lambda m, a, v: m.block_diag(a, v, a[:, :1]), [A, V]),
    ("cdist", lambda m, a, b: m.cdist(a, b), [A, B]),
    ("cdist", lambda m, a, b: m.cdist(a, b, p=1.0), [ROWS, ROWS[::-1].copy() + 3]),
    ("clone", lambda m, a: m.clone(a), [A]),
    ("column_stack", lambda m, v, a: m.column_stack([v[:3], a, v[1:]]), [V, A]),
    ("concatenate", lambda m, a, b: m.concatenate([a, b], dim=1), [A, B]),
    ("corrcoef", lambda m, a: m.corrcoef(a), [A]),
    ("cov", lambda m, a: m.cov(a), [A]),
    ("cov", lambda m, v: m.cov(v, correction=0), [V]),
    ("cross", lambda m, a, b: m.cross(a, b, dim=0), [A, B]),
    ("cross", lambda m, a, b: m.cross(a, b, dim=1), [ROWS, ROWS + 1]),
    ("cumulative_trapezoid", lambda m, a: m.cumulative_trapezoid(a, dx=0.5, dim=0), [A]),
    ("cumulative_trapezoid", lambda m, a, x: m.cumulative_trapezoid(a, x), [A, X]),
    ("diagflat", lambda m, a: m.diagflat(a, 1), [A]),
    ("diagonal_scatter", lambda m, a, v: m.diagonal_scatter(a, v[:3], 1), [A, V]),
    ("dist", lambda m, a, b: m.dist(a, b), [A, B]),
    ("dist", lambda m, a, b: m.dist(a, b, 1.0), [A, B]),
    ("dsplit", lambda m, a: list(m.dsplit(a, 2)), [ROWS]),
    ("hsplit", lambda m, a: list(m.hsplit(a, [1, 3])), [A]),
    ("hsplit", lambda m, v: list(m.hsplit(v, 2)), [V]),
    ("vsplit", lambda m, a: list(m.vsplit(a, 3)), [A]),
    ("inner", lambda m, a, b: m.inner(a, b), [A, B]),
    ("inner", lambda m, a, b: m.inner(a, b[0, 0]), [A, B]),
    ("kron", lambda m, a, b: m.kron(a, b), [A, B]),
    ("kron", lambda m, a, v: m.kron(a, v), [A, V]),
    ("kron", lambda m, v, w: m.kron(v, w), [V, W]),
    ("row_stack", lambda m, a, v: m.row_stack([a, v]), [A, V]),
    ("select_scatter", lambda m, a, v: m.select_scatter(a, v, 0, 1), [A, V]),
    ("slice_scatter", lambda m, a, b: m.slice_scatter(a, b[:, :2], 1, 0, 4, 2), [A, B]),
    ("t", lambda m, a: m.t(a), [A]),
    ("t", lambda m, v: m.t(v), [V]),
    ("trapezoid", lambda m, a: m.trapezoid(a, dx=2.0), [A]),
    ("trapezoid", lambda m, a, x: m.trapezoid(a, x[:3], dim=0), [A, X]),
    ("trapezoid", lambda m, a, x: m.trapezoid(a, a.detach() + x), [A, X]),
    ("unravel_index", lambda m, i: list(m.unravel_index(i, (3, 4, 5))), [np.arange(0, 60, 7)]),
    ("vdot", lambda m, v, w: m.vdot(v, w), [V, W]),
]


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
    plain = {"is_floating_point", "is_tensor", "numel", "vander"}
    assert {name for name, _, _ in CALLS} | plain == set(composites.__all__)
    assert all(getattr(vkml, name).__doc__ for name in composites.__all__)
    x = vkml.ones(2, 3, device=device)
    assert (vkml.numel(x), vkml.is_tensor(x), vkml.is_tensor(1)) == (6, True, False)
    assert vkml.is_floating_point(x)
    assert not vkml.is_floating_point(x > 0)
    assert vkml.as_tensor(x) is x


def test_what_does_not_fit_is_said() -> None:
    x = vkml.ones(2, 3)
    for call in (
        lambda: vkml.t(vkml.ones(1, 2, 3)),
        lambda: vkml.hsplit(x, 2),
        lambda: vkml.dsplit(x, 1),
        lambda: vkml.kron(vkml.ones(1, 1, 1), x),
        lambda: vkml.cross(vkml.ones(2), vkml.ones(2)),
    ):
        with pytest.raises(vkml.ShapeError, match=r"^\[\w+\] "):
            call()
