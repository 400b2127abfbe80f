"""Rows of a table, looked up one by one or in bags."""

from __future__ import annotations

import math

import vkml
from vkml import Tensor
from vkml._vkml import _embedding_as


def _limited(
    input: Tensor,
    weight: Tensor,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
) -> Tensor:
    """The table, with rows scaled down where that is asked for, and gradients by frequency."""
    if max_norm is None and not scale_grad_by_freq:
        return weight
    flat = input.reshape(-1)
    ones = vkml.ones_like(flat).to(vkml.float32)
    none = vkml.zeros(weight.shape[0], dtype=vkml.float32, device=weight.device)
    count = none.scatter_add(0, flat, ones).unsqueeze(1)
    if max_norm is not None:
        with vkml.no_grad():
            norms = vkml.norm(weight, norm_type, 1, True)
            # 1e-7 keeps a scaled row from exceeding the limit by rounding, as in PyTorch.
            exceeds = (count > 0).logical_and(norms > max_norm)
            weight.copy_(weight * vkml.where(exceeds, max_norm / (norms + 1e-7), 1.0))
    if scale_grad_by_freq:
        scaled = weight / count.clamp(min=1.0).to(weight.dtype)
        weight = weight.detach() + (scaled - scaled.detach())
    return weight


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table, looked up by number.

    Args:
        input: Row numbers from 0, any shape. IndexError for others, when the result is read.
        weight: The table, shape (rows, width).
        padding_idx: A row that receives no gradient.
        max_norm: Rows that are looked up and whose norm exceeds it are scaled down to it, in the
            table itself; None for no limit.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
        sparse: Accepted as PyTorch's: gradients are dense.
    """
    weight = _limited(input, weight, max_norm, norm_type, scale_grad_by_freq)
    if padding_idx is not None:
        row = padding_idx % weight.shape[0]
        rows = vkml.arange(weight.shape[0], device=weight.device).unsqueeze(1)
        weight = vkml.where(rows == row, weight.detach(), weight)
    return vkml.embedding(input, weight)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of a table.

    Args:
        input: Row numbers, shape (bags, rows of a bag); or one vector, cut by `offsets`.
        weight: The table, shape (rows, width).
        offsets: Where each bag begins in a vector of row numbers.
        max_norm: Rows that are looked up and whose norm exceeds it are scaled down to it, in the
            table itself; None for no limit.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
        mode: `sum`, `mean` or `max`.
        sparse: Accepted as PyTorch's: gradients are dense.
        per_sample_weights: A factor for each row number, for `sum` alone.
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: A row that counts for nothing.
    """
    if mode not in ("sum", "mean", "max"):
        raise vkml.ArgumentError(f"[embedding_bag] mode is {mode!r}. Pass 'sum', 'mean' or 'max'.")
    if per_sample_weights is not None and mode != "sum":
        raise vkml.ArgumentError("[embedding_bag] per_sample_weights need mode='sum'.")
    if scale_grad_by_freq and mode == "max":
        raise vkml.ArgumentError(
            "[embedding_bag] scale_grad_by_freq is not for mode='max'. Pass 'sum' or 'mean'."
        )
    weight = _limited(input, weight, max_norm, norm_type, scale_grad_by_freq)
    if input.ndim == 2:
        bags, longest = input.shape
        bag = vkml.arange(bags, device=input.device).repeat_interleave(longest)
    elif offsets is None:
        raise vkml.ArgumentError("[embedding_bag] a vector of row numbers needs offsets.")
    else:
        starts = offsets[:-1] if include_last_offset else offsets
        bags = starts.shape[0]
        places = vkml.arange(input.shape[0], device=input.device).to(starts.dtype)
        bag = vkml.searchsorted(starts, places, right=True) - 1
    flat = input.reshape(-1)
    rows = _embedding_as("embedding_bag", flat, weight)
    counted = vkml.ones_like(flat).to(rows.dtype)
    if padding_idx is not None:
        counted = (flat != padding_idx % weight.shape[0]).to(rows.dtype)
    index = bag.unsqueeze(1).broadcast_to(rows.shape)
    if mode == "max":
        base = vkml.zeros(bags, weight.shape[1], dtype=rows.dtype, device=rows.device)
        rows = vkml.where(counted.unsqueeze(1) > 0, rows, -math.inf)
        largest = vkml.scatter_reduce(base, 0, index, rows, "amax", include_self=False)
        # A bag without rows gives 0.
        return vkml.where(largest.detach() > -math.inf, largest, 0.0)
    factors = counted
    if per_sample_weights is not None:
        factors = counted * per_sample_weights.reshape(-1)
    # Halves are added up, and counted, in float32.
    wide = vkml.float64 if rows.dtype == vkml.float64 else vkml.float32
    base = vkml.zeros(bags, weight.shape[1], dtype=wide, device=rows.device)
    total = vkml.scatter_add(base, 0, index, rows.to(wide) * factors.to(wide).unsqueeze(1))
    if mode == "mean":
        sizes = vkml.scatter_add(base[:, 0], 0, bag, counted.to(wide))
        total = total / sizes.clamp(min=1.0).unsqueeze(1)
    return total.to(rows.dtype)
