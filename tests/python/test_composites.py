"""vkml.composites against PyTorch's functions of the same names, value and gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from checking import check, exact, inputs
from torch_agreement import assert_agrees, torch
from vkml import composites

A, B, ROWS = inputs((3, 4), -2, 2), inputs((3, 4), -2, 2, seed=1), inputs((2, 3, 4), -2, 2)
V, W, X = inputs((4,), -2, 2), inputs((4,), -2, 2, seed=1), np.array([0, 1, 3, 4.5], np.float32)

LEFT, TWICE = inputs((2, 4, 3), -2, 2), np.array([2, 0, 2])
PLACES = np.array([1, 11, 5, 0])

# (name, call of one module's functions, arrays)
CALLS: list[tuple[str, Callable[..., Any], list[np.ndarray]]] = [
    ("addbmm", lambda m, a, b, c: m.addbmm(a[:3, :3], b, c, beta=0.5, alpha=2), [A, ROWS, LEFT]),
    ("addr", lambda m, a, v, w: m.addr(a, v[:3], w, alpha=3), [A, V, W]),
    ("addr", lambda m, a, v, w: m.addr(a.detach(), v[:3], w, beta=0), [A, V, W]),
    ("adjoint", lambda m, a: m.adjoint(a), [ROWS]),
    ("as_tensor", lambda m, a: m.as_tensor(a), [A]),
    ("atleast_1d", lambda m, a: m.atleast_1d(a.sum()), [A]),
    ("atleast_2d", lambda m, a: m.atleast_2d(a), [V]),
    ("atleast_3d", lambda m, a: m.atleast_3d(a), [A]),
    ("atleast_3d", lambda m, v: m.atleast_3d(v), [V]),
    ("block_diag", lambda m, a, v: m.block_diag(a, v, a[:, :1]), [A, V]),
    ("cartesian_prod", lambda m, v, w: m.cartesian_prod(v, w[:3]), [V, W]),
    ("cartesian_prod", lambda m, v: m.cartesian_prod(v), [V]),
    ("cdist", lambda m, a, b: m.cdist(a, b), [A, B]),
    ("cdist", lambda m, a, b: m.cdist(a, b, p=1.0), [ROWS, ROWS[::-1].copy() + 3]),
    ("clone", lambda m, a: m.clone(a), [A]),
    ("column_stack", lambda m, v, a: m.column_stack([v[:3], a, v[1:]]), [V, A]),
    ("combinations", lambda m, v: m.combinations(v), [V]),
    ("combinations", lambda m, v: m.combinations(v, 3, True), [V]),
    ("concatenate", lambda m, a, b: m.concatenate([a, b], dim=1), [A, B]),
    ("corrcoef", lambda m, a: m.corrcoef(a), [A]),
    ("cov", lambda m, a: m.cov(a), [A]),
    ("cov", lambda m, v: m.cov(v, correction=0), [V]),
    ("cross", lambda m, a, b: m.cross(a, b, dim=0), [A, B]),
    ("cross", lambda m, a, b: m.cross(a, b, dim=1), [ROWS, ROWS + 1]),
    ("cumulative_trapezoid", lambda m, a: m.cumulative_trapezoid(a, dx=0.5, dim=0), [A]),
    ("cumulative_trapezoid", lambda m, a, x: m.cumulative_trapezoid(a, x), [A, X]),
    ("detach", lambda m, a: m.detach(a) * a, [A]),
    ("diagflat", lambda m, a: m.diagflat(a, 1), [A]),
    ("diagonal_scatter", lambda m, a, v: m.diagonal_scatter(a, v[:3], 1), [A, V]),
    ("dist", lambda m, a, b: m.dist(a, b), [A, B]),
    ("dist", lambda m, a, b: m.dist(a, b, 1.0), [A, B]),
    ("dsplit", lambda m, a: list(m.dsplit(a, 2)), [ROWS]),
    ("fill", lambda m, a, b: m.fill(a, b[0, 0]) * a, [A, B]),
    ("fill", lambda m, a: m.fill(a, 2.5) * a, [A]),
    ("gradient", lambda m, a: list(m.gradient(a)), [A]),
    ("gradient", lambda m, a: list(m.gradient(a, spacing=2.0, dim=1, edge_order=2)), [A]),
    ("gradient", lambda m, a: list(m.gradient(a, spacing=[2.0, 0.5])), [A]),
    ("hsplit", lambda m, a: list(m.hsplit(a, [1, 3])), [A]),
    ("hsplit", lambda m, v: list(m.hsplit(v, 2)), [V]),
    ("vsplit", lambda m, a: list(m.vsplit(a, 3)), [A]),
    *(
        ("index_reduce", lambda m, a, i, b, h=how: m.index_reduce(a, 0, i, b, h), [A, TWICE, B])
        for how in ("prod", "mean", "amax", "amin")
    ),
    (
        "index_reduce",
        lambda m, a, i, b: m.index_reduce(a, 0, i, b, "mean", include_self=False),
        [A, TWICE, B],
    ),
    ("inner", lambda m, a, b: m.inner(a, b), [A, B]),
    ("inner", lambda m, a, b: m.inner(a, b[0, 0]), [A, B]),
    ("kron", lambda m, a, b: m.kron(a, b), [A, B]),
    ("kron", lambda m, a, v: m.kron(a, v), [A, V]),
    ("kron", lambda m, v, w: m.kron(v, w), [V, W]),
    ("narrow_copy", lambda m, a: m.narrow_copy(a.detach(), 1, 1, 2) * a[:, :2], [A]),
    ("pdist", lambda m, a: m.pdist(a), [A]),
    ("pdist", lambda m, a: m.pdist(a, 1.0), [A]),
    ("put", lambda m, a, i, v: m.put(a, i, v), [A, PLACES, V]),
    ("put", lambda m, a, i, v: m.put(a, i, v, True), [A, PLACES, V]),
    ("renorm", lambda m, a: m.renorm(a, 2, 0, 1.5), [A]),
    ("renorm", lambda m, a: m.renorm(a, 1, 1, 2.0), [ROWS]),
    ("row_stack", lambda m, a, v: m.row_stack([a, v]), [A, V]),
    ("select_scatter", lambda m, a, v: m.select_scatter(a, v, 0, 1), [A, V]),
    ("slice_scatter", lambda m, a, b: m.slice_scatter(a, b[:, :2], 1, 0, 4, 2), [A, B]),
    ("t", lambda m, a: m.t(a), [A]),
    ("t", lambda m, v: m.t(v), [V]),
    ("trapezoid", lambda m, a: m.trapezoid(a, dx=2.0), [A]),
    ("trapezoid", lambda m, a, x: m.trapezoid(a, x[:3], dim=0), [A, X]),
    ("trapezoid", lambda m, a, x: m.trapezoid(a, a.detach() + x), [A, X]),
    ("trapz", lambda m, a: m.trapz(a, dx=0.5, dim=0), [A]),
    ("trapz", lambda m, a, x: m.trapz(a, x), [A, X]),
    ("unravel_index", lambda m, i: list(m.unravel_index(i, (3, 4, 5))), [np.arange(0, 60, 7)]),
    ("vdot", lambda m, v, w: m.vdot(v, w), [V, W]),
]


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
    plain = {"is_floating_point", "is_nonzero", "is_same_size", "is_tensor", "numel"}
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
