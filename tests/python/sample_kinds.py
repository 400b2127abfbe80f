"""Sample inputs of every kind, made from the cases and rows that specify each operator.

The kinds are those that issue reports of tensor libraries are about: no elements, one, an odd
number, many; memory read with steps, backwards or over and over; NaN, infinities, signed zeros, and
the ends of every dtype. A kind changes the arrays of a case, not what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from case import Array

Arrays = Sequence[Array]


def _is_float(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _leading(extent: int) -> Callable[[Arrays], list[Array]]:
    """Another extent of the first axis, of every array that shares the first array's."""

    def change(arrays: Arrays) -> list[Array]:
        first = arrays[0]
        if first.ndim == 0:
            return list(arrays)
        return [
            np.resize(array, (extent, *array.shape[1:]))
            if array.ndim > 0 and array.shape[0] == first.shape[0]
            else array
            for array in arrays
        ]

    return change


def _no_columns(arrays: Arrays) -> list[Array]:
    """No elements along the last axis, of every array that shares the first array's."""
    first = arrays[0]
    if first.ndim == 0:
        return list(arrays)
    return [
        array[..., :0] if array.ndim > 0 and array.shape[-1] == first.shape[-1] else array
        for array in arrays
    ]


def _scalar(arrays: Arrays) -> list[Array]:
    """One element without axes, where there is one array."""
    if len(arrays) != 1 or arrays[0].size == 0:
        return list(arrays)
    return [arrays[0].reshape(-1)[0].reshape(())]


def _with(*values: float) -> Callable[[Arrays], list[Array]]:
    """Some elements of the floating arrays replaced: every fifth, each value in its turn."""

    def change(arrays: Arrays) -> list[Array]:
        changed = []
        for array in arrays:
            copy = array.copy()
            if _is_float(array):
                places = copy.reshape(-1)[1::5]
                places[:] = np.resize(np.array(values, dtype=array.dtype), places.shape)
            changed.append(copy)
        return changed

    return change


def _repeated(arrays: Arrays) -> list[Array]:
    """The first slice of every floating array in place of all: zero strides, once broadcast."""
    return [
        np.broadcast_to(array[:1], array.shape) if _is_float(array) and array.size else array
        for array in arrays
    ]


LARGE = 1031

SIZES: dict[str, Callable[[Arrays], list[Array]]] = {
    "empty": _leading(0),
    "one element": _leading(1),
    "odd": _leading(7),
    "large": _leading(LARGE),
    "no columns": _no_columns,
    "0-d": _scalar,
}
VALUES: dict[str, Callable[[Arrays], list[Array]]] = {
    "NaN": _with(np.nan),
    "infinities": _with(np.inf, -np.inf),
    "NaN and infinities": _with(np.inf, np.nan, -np.inf, 0.0),
    "signed zeros": _with(0.0, -0.0),
}
REPEATED = {"zero stride": _repeated}


def extremes(dtype: Any, shape: Sequence[int]) -> Array:
    """The ends of a dtype of NumPy's, and what lies around zero, over and over."""
    if np.issubdtype(dtype, np.floating):
        info = np.finfo(dtype)
        values = [info.max, info.min, info.tiny, -info.tiny, 0.0, 1.0, info.eps, np.inf, -np.inf]
    else:
        limits = np.iinfo(dtype)
        values = [limits.max, limits.min, 0, 1, limits.max - 1, limits.min + 1, 2]
    return np.resize(np.array(values, dtype=dtype), tuple(shape))
