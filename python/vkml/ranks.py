"""Values by their rank that sorting gives: the most frequent, medians and quantiles without NaN."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import vkml
from vkml._results import ranked
from vkml._vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = ["mode", "nanmedian", "nanquantile"]


def _last(operator: str, input: Tensor, dim: int) -> Tensor:
    """The tensor with an axis moved to the end, and at least one element along it."""
    if input.ndim == 0 and dim not in (0, -1):
        raise vkml.ShapeError(f"[{operator}] axis {dim} is out of range for rank 0")
    lines = input.reshape(1) if input.ndim == 0 else vkml.movedim(input, dim, -1)
    if lines.shape[-1] == 0:
        raise vkml.ShapeError(f"[{operator}] of no elements: shape {input.shape}, axis {dim}")
    return lines


def _back(result: Tensor, input: Tensor, dim: int, keepdim: builtins.bool) -> Tensor:
    """One number for each line, in the shape that a reduction of `input` has."""
    if input.ndim == 0:
        return result.reshape(())
    return vkml.unsqueeze(result, dim) if keepdim else result


def mode(input: Tensor, dim: int = -1, keepdim: builtins.bool = False) -> Any:
    """The most frequent value along an axis, and the last index that has it.

    The smallest of several that are equally frequent. NaN counts as unequal to all.

    Args:
        input: Any shape and dtype; one element along the axis at least.
        dim: The axis.
        keepdim: Whether it stays, with extent 1.

    Returns:
        A named tuple (values, indices).
    """
    lines = _last("mode", input, dim)
    ascending, order = vkml.sort(lines)
    place = vkml.arange(lines.shape[-1], dtype=vkml.int32, device=input.device)
    begins = vkml.cat(
        [
            vkml.ones_like(ascending[..., :1], dtype=vkml.bool),
            ascending[..., 1:] != ascending[..., :-1],
        ],
        -1,
    )
    starts: Any = vkml.cummax(vkml.where(begins, place, 0), -1)
    # The longest run ends there; of equal ones the first, whose value is the smallest.
    end = vkml.argmax(place - starts.values, -1, keepdim=True)
    values = vkml.gather(ascending, -1, end).squeeze(-1)
    indices = vkml.gather(order, -1, end).squeeze(-1)
    return ranked("mode")(_back(values, input, dim, keepdim), _back(indices, input, dim, keepdim))


def _counted(lines: Tensor) -> tuple[Any, Any, Tensor]:
    """Ascending values with NaN last, where they were, and how many of a line are not NaN."""
    ascending, order = vkml.sort(lines)
    count = vkml.logical_not(vkml.isnan(lines)).sum(-1, keepdim=True)
    return ascending, order, count


def nanmedian(input: Tensor, dim: int | None = None, keepdim: builtins.bool = False) -> Any:
    """The median of what is not NaN: the lower of two. NaN of a line that has nothing else.

    Args:
        input: Floating-point.
        dim: The axis; None for the median of all elements.
        keepdim: Whether the axis stays, with extent 1.

    Returns:
        A tensor, or with `dim` a named tuple (values, indices).
    """
    lines = input.reshape(-1) if dim is None else _last("nanmedian", input, dim)
    if dim is None and input.numel() == 0:
        return vkml.full((), math.nan, dtype=input.dtype, device=input.device)
    ascending, order, count = _counted(lines)
    place = vkml.clamp((count - 1) // 2, min=0)
    values = vkml.gather(ascending, -1, place).squeeze(-1)
    if dim is None:
        return values
    indices = vkml.gather(order, -1, place).squeeze(-1)
    return ranked("nanmedian")(
        _back(values, input, dim, keepdim), _back(indices, input, dim, keepdim)
    )


def nanquantile(
    input: Tensor,
    q: float | Sequence[float] | Tensor,
    dim: int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles of what is not NaN. NaN of a line that has nothing else.

    Args:
        input: Floating-point.
        q: Shares in [0, 1]: one, or several, which come first in the result's shape.
        dim: The axis; None for all elements.
        keepdim: Whether the axis stays, with extent 1.
        interpolation: Between two ranks: `linear`, `lower`, `higher`, `midpoint` or `nearest`.
    """
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise vkml.ArgumentError(
            f"[nanquantile] interpolation is {interpolation!r}. Pass 'linear', 'lower', 'higher', "
            f"'midpoint' or 'nearest'."
        )
    shares = [q] if isinstance(q, int | float) else q.tolist() if isinstance(q, Tensor) else q
    is_one = isinstance(q, int | float) or (isinstance(q, Tensor) and q.ndim == 0)
    shares = [shares] if isinstance(shares, float) else list(shares)
    if any(not 0 <= share <= 1 for share in shares):
        raise vkml.ArgumentError(f"[nanquantile] q is {shares}. Pass shares in [0, 1].")
    lines = input.reshape(-1) if dim is None else _last("nanquantile", input, dim)
    ascending, _, count = _counted(lines)
    last = vkml.clamp(count - 1, min=0)
    results = []
    for share in shares:
        exact = last.to(input.dtype) * share
        low, high = vkml.floor(exact), vkml.ceil(exact)
        weight = exact - low
        if interpolation in ("lower", "higher"):
            low = high = low if interpolation == "lower" else high
        elif interpolation == "nearest":
            low = high = vkml.round(exact)
        elif interpolation == "midpoint":
            weight = vkml.full_like(weight, 0.5)
        below = vkml.gather(ascending, -1, low.to(vkml.int32)).squeeze(-1)
        above = vkml.gather(ascending, -1, high.to(vkml.int32)).squeeze(-1)
        found = vkml.lerp(below, above, weight.squeeze(-1))
        if dim is not None:
            found = _back(found, input, dim, keepdim)
        elif keepdim:
            found = found.reshape((1,) * input.ndim)
        results.append(found)
    return results[0] if is_one else vkml.stack(results, 0)


_check_arguments(globals(), __all__)
