"""Reductions, scans and sums of products, by the Array API's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import vkml
from vkml import Tensor
from vkml._vkml import dtype as DType
from vkml._vkml import matmul as matmul
from vkml._vkml import matrix_transpose as matrix_transpose
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "tensordot",
    "var",
    "vecdot",
]

Axes = int | tuple[int, ...]


def _reduced(
    function: Callable[..., Tensor], x: Tensor, axis: Axes | None, keepdims: bool, **options: Any
) -> Tensor:
    """A reduction over axes: over none of them, (), it is one of each element alone."""
    if axis == ():
        return function(x.reshape(-1, 1), axis=1, **options).reshape(x.shape)
    return function(x, axis=axis, keepdims=keepdims, **options)


def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether every element is true, along axes or everywhere."""
    return _reduced(vkml.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true, along axes or everywhere."""
    return _reduced(vkml.any, x, axis, keepdims)


def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The largest along axes or of all; NaN if any is NaN."""
    return _reduced(vkml.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The smallest along axes or of all; NaN if any is NaN."""
    return _reduced(vkml.amin, x, axis, keepdims)


def sum(
    x: Tensor, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The sum along axes or of all; of bools and uint8 it is int32."""
    return _reduced(vkml.sum, x, axis, keepdims, dtype=dtype)


def prod(
    x: Tensor, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The product along axes or of all; of bools and uint8 it is int32."""
    return _reduced(vkml.prod, x, axis, keepdims, dtype=dtype)


def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The mean along axes or of all."""
    return _reduced(vkml.mean, x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Squared differences from the mean over (count - correction)."""
    return _reduced(vkml.var, x, axis, keepdims, correction=correction)


def std(
    x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square root of `var`."""
    return _reduced(vkml.std, x, axis, keepdims, correction=correction)


def _scanned(
    operator: str, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise vkml.ArgumentError(f"[{operator}] shape {x.shape} has several axes. Pass axis")
        axis = 0
    scan, first = (vkml.cumsum, 0) if operator == "cumulative_sum" else (vkml.cumprod, 1)
    result = scan(x, axis, dtype=dtype)
    if not include_initial:
        return result
    extents = list(x.shape)
    extents[axis] = 1
    start = vkml.full(tuple(extents), first, dtype=result.dtype, device=x.device)
    return vkml.concat([start, result], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Sums of the elements up to each one along an axis, after a 0 with `include_initial`."""
    return _scanned("cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Products of the elements up to each one along an axis, after a 1 with `include_initial`."""
    return _scanned("cumulative_prod", x, axis, dtype, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, `n` times, with tensors set before and after."""
    parts = [part for part in (prepend, x, append) if part is not None]
    return vkml.diff(vkml.concat(parts, axis) if len(parts) > 1 else x, n, axis)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[tuple[int, ...], tuple[int, ...]] = 2
) -> Tensor:
    """Sums of products over the last axes of one and the first of the other, or over two lists."""
    return vkml.tensordot(x1, x2, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis; the other axes broadcast."""
    # A sum of integers would be wider.
    return vkml.vecdot(x1, x2, axis=axis).to(vkml.result_type(x1, x2))


_check_arguments(globals(), __all__)
