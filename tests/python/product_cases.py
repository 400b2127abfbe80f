"""Cases of products and statistics."""

from typing import Any

import numpy as np

import vkml
from case import Array, Case, small
from checking import inputs

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 2)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ij->ji", [(3, 4)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("ij->", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i", [(5,), (5,)]),
    ("ij,ij->i", [(3, 4), (3, 4)]),
    ("ij,kj,lk->il", [(2, 3), (4, 3), (5, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
    ("b...i,ij->b...j", [(2, 3, 4), (4, 2)]),
    ("ba", [(2, 3)]),
    ("ij,j", [(3, 4), (4,)]),
    ("aij,jk->aik", [(0, 3, 2), (2, 4)]),
]


def _products() -> list[Case]:
    a, b, c = small(3, 4), inputs((4, 2), -1, 1), small(3, 2)
    batch_a, batch_b, batch_c = small(2, 3, 4), inputs((2, 4, 2), -1, 1), small(2, 3, 2)
    u, v = small(5), inputs((5,), -1, 1)
    cases = [
        Case(
            "einsum",
            lambda *t, e=equation: vkml.einsum(e, *t),
            lambda *x, e=equation: np.einsum(e, *x),
            [inputs(shape, -1, 1, seed=i) for i, shape in enumerate(shapes)],
            label=equation,
        )
        for equation, shapes in EQUATIONS
    ]
    return [
        *cases,
        Case("mm", vkml.mm, np.matmul, [a, b]),
        Case("bmm", vkml.bmm, np.matmul, [batch_a, batch_b]),
        Case("mv", vkml.mv, np.matmul, [a, v[:4]]),
        Case("dot", vkml.dot, np.dot, [u, v]),
        Case("outer", vkml.outer, np.outer, [u, v]),
        Case(
            "vecdot",
            lambda x, y: vkml.vecdot(x, y, axis=0),
            lambda x, y: (x * y).sum(0),
            [c, c + 1],
        ),
        Case("addmm", vkml.addmm, lambda x, y, z: x + y @ z, [c, a, b]),
        Case(
            "addmm",
            lambda x, y, z: x.addmm(y, z, beta=0.5, alpha=2),
            lambda x, y, z: 0.5 * x + 2 * (y @ z),
            [c[0], a, b],
            label="scaled",
        ),
        Case("addmv", vkml.addmv, lambda x, y, z: x + y @ z, [u[:3], a, v[:4]]),
        Case("baddbmm", vkml.baddbmm, lambda x, y, z: x + y @ z, [batch_c, batch_a, batch_b]),
        Case("tensordot", vkml.tensordot, np.tensordot, [small(2, 3, 4), inputs((3, 4, 2), -1, 1)]),
        Case(
            "tensordot",
            lambda x, y: vkml.tensordot(x, y, ((0, 2), (1, 0))),
            lambda x, y: np.tensordot(x, y, ((0, 2), (1, 0))),
            [small(2, 3, 4), inputs((4, 2, 5), -1, 1)],
            label="axes",
        ),
        Case(
            "tensordot",
            lambda x, y: vkml.tensordot(x, y, 0),
            lambda x, y: np.tensordot(x, y, 0),
            [a, c],
            label="outer",
        ),
    ]


def _norm(a: Array, order: float, axis: Any) -> Array:
    size = np.abs(a)
    if order == np.inf:
        return size.max(axis)
    if order == -np.inf:
        return size.min(axis)
    if order == 0:
        return (size != 0).sum(axis).astype(np.float64)
    return (size**order).sum(axis) ** (1 / order)


def _statistics() -> list[Case]:
    x = small(3, 4, 5)
    holes = np.where(small(4, 6) > 1, np.nan, small(4, 6)).astype(np.float32)
    sparse = np.round(small(3, 5))
    cases = [
        Case(
            "norm",
            lambda t, p=order, a=axis: vkml.norm(t, p, dim=a),
            lambda a, p=order, i=axis: _norm(a, p, i),
            [x],
            gradient=order != 0,
            label=f"{order}-{axis}",
        )
        for order in (2.0, 1.0, 0.0, 3.0, 0.5, np.inf, -np.inf)
        for axis in (None, 1, (0, 2))
    ]
    return [
        *cases,
        Case(
            "count_nonzero",
            lambda t: vkml.count_nonzero(t, dim=1),
            lambda a: np.count_nonzero(a, 1),
            [sparse],
            0,
            False,
        ),
        Case(
            "count_nonzero",
            lambda t: t.count_nonzero(),
            np.count_nonzero,
            [sparse],
            0,
            False,
            "all",
        ),
        Case(
            "nansum",
            lambda t: vkml.nansum(t, 0),
            lambda a: np.nansum(a, 0),
            [holes],
            gradient=False,
        ),
        Case("nanmean", lambda t: t.nanmean(), np.nanmean, [holes], gradient=False),
        Case("aminmax", lambda t: vkml.aminmax(t, dim=1)[1], lambda a: a.max(1), [x], 0),
        Case("aminmax", lambda t: t.aminmax()[0], np.min, [x], 0, label="all"),
        Case("std_mean", lambda t: vkml.std_mean(t, 1)[0], lambda a: a.std(1, ddof=1), [x]),
        Case("var_mean", lambda t: t.var_mean(1, correction=0)[1], lambda a: a.mean(1), [x]),
    ]


PRODUCT_CASES: list[Case] = [*_products(), *_statistics()]
