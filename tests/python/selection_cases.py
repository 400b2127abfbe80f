"""Cases of reading and writing by index and by mask."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkml
from case import Array, Case, small
from checking import inputs


def scatter_reference(
    base: Array, index: Array, source: Array, axis: int, combine: Callable[[Any, Any], Any]
) -> Array:
    """Every source element combined with the base's at its index, in order."""
    result = base.copy()
    for position in np.ndindex(index.shape):
        target = list(position)
        target[axis] = index[position]
        result[tuple(target)] = combine(result[tuple(target)], source[position])
    return result


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "amax": np.maximum,
    "amin": np.minimum,
}
IDENTITY = {"sum": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf, "mean": 0.0}


def _reduced(base: Array, index: Array, source: Array, axis: int, how: str, own: bool) -> Array:
    hits = scatter_reference(
        np.zeros(base.shape), index, np.ones(source.shape), axis, COMBINE["sum"]
    )
    start = base if own else np.where(hits > 0, IDENTITY[how], base)
    total = scatter_reference(start, index, source, axis, COMBINE["sum" if how == "mean" else how])
    return total / (hits + 1 if own else np.maximum(hits, 1)) if how == "mean" else total


def _scatters() -> list[Case]:
    x = small(4, 5)
    index = np.array([[0, 3, 3], [3, 0, 3], [1, 0, 2]], dtype=np.int64)
    source = inputs((3, 3), 1, 2)
    cases = []
    for axis in (0, 1):
        cases.append(
            Case(
                "scatter",
                lambda t, i, s, d=axis: vkml.scatter(t, d, i, s),
                lambda a, i, s, d=axis: scatter_reference(a, i, s, d, lambda _, new: new),
                [x, index, source],
                0,
                label=f"replace-{axis}",
            )
        )
        cases += [
            Case(
                "scatter_reduce",
                lambda t, i, s, d=axis, h=how, o=own: t.scatter_reduce(d, i, s, h, include_self=o),
                lambda a, i, s, d=axis, h=how, o=own: _reduced(a, i, s, d, h, o),
                [x, index, source],
                label=f"{how}-{axis}-{own}",
            )
            for how in IDENTITY
            for own in (True, False)
        ]
    rows = np.array([2, 0, 2], dtype=np.int32)
    part = inputs((3, 5), 0, 1)
    added = lambda a, i, s: scatter_reference(  # noqa: E731
        a, np.broadcast_to(i[:, None], s.shape), s, 0, COMBINE["sum"]
    )
    return [
        *cases,
        Case(
            "scatter",
            lambda t, i: t.scatter(1, i, 7.0),
            lambda a, i: scatter_reference(a, i, np.full(i.shape, 7.0), 1, lambda _, new: new),
            [x, index],
            0,
            label="number",
        ),
        Case("index_add", lambda t, i, s: vkml.index_add(t, 0, i, s), added, [x, rows, part], 4),
        Case(
            "index_copy",
            lambda t, i, s: vkml.index_copy(t, 0, i, s),
            lambda a, i, s: scatter_reference(
                a, np.broadcast_to(i[:, None], s.shape), s, 0, lambda _, new: new
            ),
            [x, rows, part],
            0,
        ),
        Case(
            "index_fill",
            lambda t, i: t.index_fill(0, i, -1.0),
            lambda a, i: np.where(np.isin(np.arange(4), i)[:, None], -1.0, a),
            [x, rows],
            0,
        ),
        Case(
            "take_along_dim",
            lambda t, i: vkml.take_along_dim(t, i, dim=1),
            lambda a, i: np.take_along_axis(a, i, 1),
            [x[:3], index],
            0,
        ),
        Case(
            "take_along_axis",
            lambda t, i: vkml.take_along_axis(t, i, axis=0),
            lambda a, i: np.take_along_axis(a, i, 0),
            [x, index[:1, :1]],
            0,
        ),
    ]


def _indices() -> list[Case]:
    x = small(3, 4, 5)
    i = np.array([2, 0, -1], dtype=np.int64)
    j = np.array([[1], [3]], dtype=np.int32)
    k = np.array([0, 4, 4], dtype=np.int64)
    mask, row_mask = small(3, 4, 5) > 0.5, np.array([True, False, True])
    plane = small(3, 4) > 0
    reads: list[tuple[str, Callable[..., Any], list[Array]]] = [
        ("i", lambda t, i: t[i], [i]),
        ("i, j", lambda t, i, j: t[i, j], [i, j]),
        ("i, :, k", lambda t, i, k: t[i, :, k], [i, k]),
        (":, j, k", lambda t, j, k: t[:, j, k], [j, k]),
        ("..., k", lambda t, k: t[..., k], [k]),
        ("1:, j", lambda t, j: t[1:, j], [j]),
        ("::-1, :, k", lambda t, k: t[::-1, :, k], [k]),
        ("None, i", lambda t, i: t[None, i], [i]),
        ("mask", lambda t, m: t[m], [mask]),
        ("rows", lambda t, m: t[m], [row_mask]),
        ("plane", lambda t, m: t[m], [plane]),
        ("plane, k", lambda t, m: t[m, 2:], [plane]),
        ("rows, i", lambda t, m, k: t[m, k[:2] // 2], [row_mask, k]),
        ("list", lambda t: t[[0, 2], 1], []),
    ]
    cases = [
        Case("getitem", read, read, [x, *arrays], 0, label=name) for name, read, arrays in reads
    ]

    def written(write: Callable[..., None]) -> Callable[..., Any]:
        def apply(base: Any, *rest: Any) -> Any:
            copy = base.copy() if isinstance(base, np.ndarray) else base.clone()
            write(copy, *rest)
            return copy

        return apply

    def put(t: Any, v: Any, *index: Any) -> None:
        t[index] = v

    def put_apart(t: Any, v: Any, i: Any, k: Any) -> None:
        t[i, :, k] = v

    def add(t: Any, v: Any, *index: Any) -> None:
        t[index] += v

    def put_mask(t: Any, v: Any, m: Any) -> None:
        t[m] = v

    def put_number(t: Any, m: Any) -> None:
        t[m] = -3.0

    def add_mask(t: Any, m: Any) -> None:
        t[m] += 2.0

    def put_sliced(t: Any, v: Any, k: Any) -> None:
        t[1:, ::2, k] = v

    writes: list[tuple[str, Callable[..., None], list[Array]]] = [
        ("put", put, [small(3, 4, 5) * 2, i]),
        ("put row", put, [small(5), i, j]),
        ("put apart", put_apart, [small(3, 4), i, k]),
        ("add", add, [small(4, 5), i]),
        ("put mask", put_mask, [inputs((int(row_mask.sum()), 4, 5), 0, 1), row_mask]),
        ("put number", put_number, [mask]),
        ("add mask", add_mask, [mask]),
        ("put sliced", put_sliced, [small(2, 2, 3), k]),
    ]
    cases += [
        Case("setitem", written(write), written(write), [x, *arrays], 2, label=name)
        for name, write, arrays in writes
    ]
    return [
        *cases,
        Case(
            "index_put",
            lambda t, i, k, v: vkml.index_put(t, (i, None, k), v),
            written(lambda t, i, k, v: t.__setitem__((i, slice(None), k), v)),
            [x, i, k, small(3, 4)],
            0,
        ),
        Case(
            "index_put",
            lambda t, i, v: t.index_put((i,), v, accumulate=True),
            written(lambda t, i, v: np.add.at(t, i, v)),
            [x, np.array([1, 1, 0]), inputs((3, 4, 5), 0, 1)],
            4,
            label="add",
        ),
    ]


def _masks() -> list[Case]:
    x = small(3, 5)
    mask = small(3, 5) > 0
    sparse = np.round(small(3, 4, 5) / 2)
    source = inputs((15,), 5, 6)
    none = np.zeros((3, 5), dtype=bool)

    def spread(a: Array, m: Array, s: Array) -> Array:
        result = a.copy()
        result[m] = s[: m.sum()]
        return result

    return [
        Case("nonzero", vkml.nonzero, np.argwhere, [sparse], 0, False),
        Case(
            "nonzero",
            lambda t: t.nonzero(as_tuple=True)[1],
            lambda a: a.nonzero()[1],
            [sparse],
            0,
            False,
            "tuple",
        ),
        Case("nonzero", vkml.nonzero, np.argwhere, [none], 0, False, "none"),
        Case("argwhere", vkml.argwhere, np.argwhere, [mask], 0, False),
        Case("masked_select", vkml.masked_select, lambda a, m: a[m], [x, mask], 0),
        Case(
            "masked_select",
            vkml.masked_select,
            lambda a, m: a[np.broadcast_to(m, a.shape)],
            [x, mask[:1]],
            0,
            label="broadcast",
        ),
        Case("masked_select", vkml.masked_select, lambda a, m: a[m], [x, none], 0, label="none"),
        Case(
            "masked_fill",
            lambda t, m: vkml.masked_fill(t, m, -2.0),
            lambda a, m: np.where(m, -2.0, a),
            [x, mask],
            0,
        ),
        Case("masked_scatter", vkml.masked_scatter, spread, [x, mask, source], 0),
    ]


SELECTION_CASES: list[Case] = [*_scatters(), *_indices(), *_masks()]
