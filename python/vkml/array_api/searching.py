"""Positions, order and sets, by the Array API's signatures; positions are int64."""

from __future__ import annotations

from typing import NamedTuple

import vkml
from vkml import Tensor
from vkml._vkml import where as where
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.array_api.info import INDEX_DTYPE

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


class UniqueAll(NamedTuple):
    """Distinct elements, where each is met first, where each element went, how often each is."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and where each element went."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the largest along an axis, or in the flattened tensor."""
    return vkml.argmax(x, axis=axis, keepdims=keepdims).to(INDEX_DTYPE)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the smallest along an axis, or in the flattened tensor."""
    return vkml.argmin(x, axis=axis, keepdims=keepdims).to(INDEX_DTYPE)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Positions that sort an axis, equal elements in their order; NaN is the largest."""
    return vkml.argsort(x, axis, descending).to(INDEX_DTYPE)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis; NaN is the largest."""
    values: Tensor = vkml.sort(x, axis, descending)[0]
    return values


def count_nonzero(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """How many elements are not 0, along axes or everywhere."""
    return vkml.count_nonzero(x, axis=axis, keepdims=keepdims).to(INDEX_DTYPE)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of elements that are not 0, a vector for each axis; waits for the values.

    Raises:
        ShapeError: For a tensor of rank 0.
    """
    if x.ndim == 0:
        raise vkml.ShapeError("[nonzero] a tensor of rank 0 has no positions. Use x != 0")
    positions: tuple[Tensor, ...] = vkml.nonzero(x, as_tuple=True)
    return positions


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: str = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where values would be inserted into a vector in ascending order.

    Args:
        x1: The vector.
        x2: The values, of any shape.
        side: "left" of what equals them, or "right".
        sorter: Positions that put the vector into ascending order.
    """
    line = x1 if sorter is None else vkml.take(x1, sorter)
    return vkml.searchsorted(line, x2, side=side).to(INDEX_DTYPE)


def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Whether each element of one tensor occurs in the other, or does not with `invert`."""
    first = x1 if isinstance(x1, Tensor) else vkml.tensor(x1)
    second = x2 if isinstance(x2, Tensor) else vkml.tensor(x2, device=first.device)
    return vkml.isin(first, second, invert=invert)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices at the indices along an axis, which a vector need not name.

    Raises:
        ArgumentError: Without an axis, for more than one.
    """
    if axis is None and x.ndim != 1:
        raise vkml.ArgumentError(f"[take] shape {x.shape} has more axes than one. Pass axis")
    return vkml.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements at indices along an axis; the other axes broadcast."""
    return vkml.take_along_axis(x, indices, axis=axis)


def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements in order, every NaN by itself; waits for the values."""
    values, inverse, counts = vkml.unique(x, return_inverse=True, return_counts=True)
    line = inverse.reshape(-1)
    first = vkml.full(values.shape, line.numel(), dtype=INDEX_DTYPE, device=x.device)
    order = vkml.arange(line.numel(), dtype=INDEX_DTYPE, device=x.device)
    first = first.scatter_reduce(0, line, order, "amin")
    return UniqueAll(values, first, inverse.to(INDEX_DTYPE), counts.to(INDEX_DTYPE))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements in order, every NaN by itself, and how often each occurs; waits."""
    values, counts = vkml.unique(x, return_counts=True)
    return UniqueCounts(values, counts.to(INDEX_DTYPE))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements in order, every NaN by itself, and where each element went; waits."""
    values, inverse = vkml.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.to(INDEX_DTYPE))


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements in order, every NaN by itself; waits for the values."""
    values: Tensor = vkml.unique(x)
    return values


_check_arguments(globals(), __all__)
