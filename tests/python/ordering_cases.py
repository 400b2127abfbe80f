"""Cases of scans, sorting and searching."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkml
from case import Array, Case, small
from checking import inputs

Row = tuple[str, Callable[..., Any], Callable[..., Any], Array]


def _last_extreme(a: Array, axis: int, largest: bool) -> Array:
    """Position of the last extreme up to each element."""
    lines = np.moveaxis(a, axis, -1)
    result = np.zeros(lines.shape, dtype=np.int32)
    for line in np.ndindex(lines.shape[:-1]):
        best = 0
        for i, value in enumerate(lines[line]):
            held = lines[line][best]
            reaches = value >= held if largest else value <= held
            if i == 0 or np.isnan(value) or (not np.isnan(held) and reaches):
                best = i
            result[(*line, i)] = best
    return np.moveaxis(result, -1, axis)


def _recurrence(a: Array, b: Array, axis: int) -> Array:
    factors, terms = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    rows = [terms[0]]
    for factor, term in zip(factors[1:], terms[1:], strict=True):
        rows.append(factor * rows[-1] + term)
    return np.moveaxis(np.stack(rows), 0, axis)


def _scans() -> list[Case]:
    x = small(3, 4, 5)
    zeros = np.array([[2, 0, 3, 1], [0, 4, 0, 5], [1, 2, 3, 4]], dtype=np.float32)
    long = inputs((2, 300), -1, 1)
    ties = np.array([[1, 3, 3, 2, 3], [0, 0, -1, -1, 5]], dtype=np.float32)
    cases = []
    for axis in (0, 1, -1):
        for name, reference in (
            ("cumsum", np.cumsum),
            ("cumprod", np.cumprod),
            ("logcumsumexp", np.logaddexp.accumulate),
        ):
            function = getattr(vkml, name)
            cases.append(
                Case(
                    name,
                    lambda t, f=function, i=axis: f(t, i),
                    lambda a, f=reference, i=axis: f(a, axis=i),
                    [x],
                    label=str(axis),
                )
            )
        for name, largest in (("cummax", True), ("cummin", False)):
            values = np.maximum if largest else np.minimum
            function = getattr(vkml, name)
            cases += [
                Case(
                    name,
                    lambda t, f=function, i=axis: f(t, i).values,
                    lambda a, f=values, i=axis: f.accumulate(a, axis=i),
                    [x],
                    0,
                    label=f"values-{axis}",
                ),
                Case(
                    name,
                    lambda t, f=function, i=axis: f(t, axis=i).indices,
                    lambda a, m=largest, i=axis: _last_extreme(a, i, m),
                    [ties if axis != 1 else x],
                    0,
                    False,
                    f"indices-{axis}",
                ),
            ]
    cases += [
        Case("cumprod", lambda t: t.cumprod(1), lambda a: a.cumprod(1), [zeros], label="zeros"),
        Case("cumsum", lambda t: t.cumsum(1), lambda a: a.cumsum(1), [long], label="long"),
        Case(
            "cumsum",
            lambda t: t.cumsum(0),
            lambda a: a.cumsum(0),
            [inputs((0, 3), 0, 1)],
            label="empty",
        ),
        Case("cumsum", lambda t: t.cumsum(), np.cumsum, [small(1)], label="one"),
        Case("prod", lambda t: t.prod(1), lambda a: a.prod(1), [zeros], label="zeros"),
        Case("prod", lambda t: t.prod(), np.prod, [zeros[2:]], label="all"),
        *(
            Case(
                "linear_recurrence",
                lambda a, b, i=axis: vkml.linear_recurrence(a, b, i),
                lambda a, b, i=axis: _recurrence(a, b, i),
                [small(2, 70), inputs((2, 70), -1, 1) * 0.5],
                32,
                label=str(axis),
            )
            for axis in (0, -1)
        ),
        Case("diff", lambda t: vkml.diff(t, 2, 1), lambda a: np.diff(a, 2, 1), [x], 4),
    ]
    return cases


def _descending(a: Array) -> Array:
    """Positions from the largest on, NaN first; equal elements in their order."""
    ranks = np.unique(a, return_inverse=True)[1].reshape(a.shape)
    return np.argsort(-ranks, -1, kind="stable").astype(np.int32)


def _sorting() -> list[Case]:
    x, line = small(3, 4, 5), inputs((2, 150), -3, 3)
    ties = np.random.default_rng(3).integers(0, 4, (3, 97)).astype(np.float32)
    cases = []
    for axis in (0, 1, -1):
        cases += [
            Case(
                "sort",
                lambda t, i=axis: vkml.sort(t, i).values,
                lambda a, i=axis: np.sort(a, i),
                [x],
                0,
                label=f"values-{axis}",
            ),
            Case(
                "sort",
                lambda t, i=axis: t.sort(dim=i, descending=True)[0],
                lambda a, i=axis: np.flip(np.sort(a, i), i),
                [x],
                0,
                label=f"descending-{axis}",
            ),
            Case(
                "topk",
                lambda t, i=axis: vkml.topk(t, 2, i).values,
                lambda a, i=axis: np.take(np.flip(np.sort(a, i), i), [0, 1], i),
                [x],
                0,
                label=f"largest-{axis}",
            ),
            Case(
                "topk",
                lambda t, i=axis: t.topk(3, dim=i, largest=False).values,
                lambda a, i=axis: np.take(np.sort(a, i), [0, 1, 2], i),
                [x],
                0,
                label=f"smallest-{axis}",
            ),
        ]
    return [
        *cases,
        Case(
            "argsort",
            lambda t: vkml.argsort(t),
            lambda a: np.argsort(a, -1, kind="stable").astype(np.int32),
            [ties],
            0,
            False,
            "ties",
        ),
        Case(
            "argsort",
            lambda t: t.argsort(descending=True),
            _descending,
            [ties],
            0,
            False,
            "descending",
        ),
        Case("sort", lambda t: vkml.sort(t)[0], np.sort, [line], 0, label="long"),
        Case("msort", vkml.msort, lambda a: np.sort(a, 0), [x], 0),
        Case(
            "kthvalue",
            lambda t: vkml.kthvalue(t, 2, 1).values,
            lambda a: np.sort(a, 1)[:, 1],
            [x],
            0,
        ),
        Case(
            "median",
            lambda t: vkml.median(t, 1).values,
            lambda a: np.where(np.isnan(a).any(1), np.nan, np.sort(a, 1)[:, 1]),
            [x],
            0,
        ),
        Case("median", lambda t: t.median(), np.median, [small(3, 5)], 0, label="all"),
        *(
            Case(
                "quantile",
                lambda t, h=how: vkml.quantile(t, 0.4, dim=1, interpolation=h),
                lambda a, h=how: np.quantile(a, 0.4, axis=1, method=h),
                [x],
                4,
                label=how,
            )
            for how in ("linear", "lower", "higher", "midpoint", "nearest")
        ),
        Case(
            "quantile",
            lambda t: t.quantile([0.0, 0.3, 1.0], keepdim=True),
            lambda a: np.quantile(a, [0.0, 0.3, 1.0], keepdims=True),
            [x],
            4,
            label="several",
        ),
    ]


def _searching() -> list[Case]:
    edges = np.array([-1.5, -0.5, -0.5, 0.0, 1.0], dtype=np.float32)
    rows = np.sort(small(3, 6), -1)
    numbers = np.array([3, 1, 3, 0, 7, 1, 3], dtype=np.int64)
    runs = np.array([2, 2, 0, 0, 0, 2, 5], dtype=np.int32)
    x = small(4, 5)
    weights = inputs((7,), 0, 1)
    cases = []
    for right in (False, True):
        side = "right" if right else "left"
        cases += [
            Case(
                "searchsorted",
                lambda s, v, r=right: vkml.searchsorted(s, v, right=r),
                lambda s, v, d=side: np.searchsorted(s, v, d),
                [edges, x],
                0,
                False,
                side,
            ),
            Case(
                "searchsorted",
                lambda s, v, d=side: vkml.searchsorted(s, v, side=d),
                lambda s, v, d=side: np.stack(
                    [np.searchsorted(i, j, d) for i, j in zip(s, v, strict=True)]
                ),
                [rows, small(3, 4)],
                0,
                False,
                f"rows-{side}",
            ),
        ]
    return [
        *cases,
        Case(
            "bucketize",
            lambda v, e: vkml.bucketize(v, e),
            lambda v, e: np.searchsorted(e, v),
            [x, edges],
            0,
            False,
        ),
        *(
            Case(
                "unique",
                lambda t, i=i: vkml.unique(t, return_inverse=True, return_counts=True)[i],
                lambda a, i=i: np.unique(a, return_inverse=True, return_counts=True)[i],
                [numbers],
                0,
                False,
                str(i),
            )
            for i in range(3)
        ),
        Case(
            "unique",
            lambda t: t.unique(),
            lambda a: np.unique(a, equal_nan=False),
            [np.round(x)],
            0,
            False,
            "floats",
        ),
        *(
            Case(
                "unique",
                lambda t, i=i, d=d: vkml.unique(t, True, True, True, dim=d)[i],
                lambda a, i=i, d=d: np.unique(a, return_inverse=True, return_counts=True, axis=d)[
                    i
                ],
                [np.array([[1, 0, 1, 1], [0, 2, 0, 0], [1, 0, 1, 1]], dtype=np.float32)],
                0,
                False,
                f"slices-{d}-{i}",
            )
            for d in (0, 1)
            for i in range(3)
        ),
        Case(
            "unique_consecutive",
            lambda t: vkml.unique_consecutive(t, dim=1),
            lambda a: a[:, [0, 2, 3]],
            [np.array([[1, 1, 2, 1], [0, 0, 0, 0]], dtype=np.int32)],
            0,
            False,
            "slices",
        ),
        Case(
            "unique_consecutive",
            lambda t: vkml.unique_consecutive(t),
            lambda a: np.array([2, 0, 2, 5], dtype=np.int32),
            [runs],
            0,
            False,
        ),
        Case(
            "unique_consecutive",
            lambda t: t.unique_consecutive(return_counts=True)[1],
            lambda a: np.array([2, 3, 1, 1]),
            [runs],
            0,
            False,
            "counts",
        ),
        Case("bincount", vkml.bincount, np.bincount, [numbers], 0, False),
        Case(
            "bincount",
            lambda t: t.bincount(minlength=12),
            lambda a: np.bincount(a, minlength=12),
            [numbers],
            0,
            False,
            "longer",
        ),
        Case(
            "bincount",
            lambda t, w: vkml.bincount(t, w),
            lambda a, w: np.bincount(a, w),
            [numbers, weights],
            2,
            False,
            "weights",
        ),
        Case(
            "histc",
            lambda t: vkml.histc(t, 4, -1, 1),
            lambda a: np.histogram(a, 4, (-1, 1))[0].astype(np.float64),
            [x],
            0,
            False,
        ),
        Case(
            "histogram",
            lambda t, e: vkml.histogram(t, e[::2].contiguous())[0].to(vkml.int32),
            lambda a, e: np.histogram(a, e[::2])[0],
            [x, edges],
            0,
            False,
        ),
        Case(
            "isin",
            lambda t, o: vkml.isin(t, o),
            lambda a, o: np.isin(a, o),
            [numbers, runs],
            0,
            False,
        ),
        Case(
            "isin",
            lambda t, o: t.isin(o, invert=True),
            lambda a, o: np.isin(a, o, invert=True),
            [numbers, runs],
            0,
            False,
            "invert",
        ),
    ]


ORDERING_CASES: list[Case] = [*_scans(), *_sorting(), *_searching()]
