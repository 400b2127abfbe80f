"""Cases of `vkml.composites` and recurrent layers, against PyTorch's of the same names."""

from collections.abc import Callable
from typing import Any

import numpy as np

from checking import inputs
from function_case import FunctionCase

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
    ("cov", lambda m, a: m.cov(a[:1]), [A]),
    ("corrcoef", lambda m, a: m.corrcoef(a[:1]) * a[0, 0], [A]),
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

COMPOSITE_CASES = [
    FunctionCase(
        "",
        name,
        arrays,
        call=call,
        units=4,
        no_gradient="" if any(a.dtype == np.float32 for a in arrays) else "of integers",
        label=str(place),
    )
    for place, (name, call, arrays) in enumerate(CALLS)
]


def _layer(kind: str, gates: int) -> FunctionCase:
    """A layer of two directions with given parameters, over five steps of two sequences."""
    shapes = [(gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,)] * 2
    parameters = [inputs(shape, -0.5, 0.5, seed=place) for place, shape in enumerate(shapes)]

    def call(module: Any, x: Any, *given: Any) -> list[Any]:
        layer = getattr(module.nn, kind)(3, 4, bidirectional=True)
        names = [name for name, _ in layer.named_parameters()]
        output, state = module.func.functional_call(layer, dict(zip(names, given, strict=True)), x)
        return [output, *state] if isinstance(state, tuple) else [output, state]

    return FunctionCase("nn", kind, [inputs((5, 2, 3), -1, 1), *parameters], call=call, units=4)


RECURRENT_CASES = [_layer("RNN", 1), _layer("GRU", 3), _layer("LSTM", 4)]
