"""vmap: a function of one example becomes a function of a batch.

The function is called once, with placeholders that have an example's shape and no value. The graph
that this records is recorded again with one more axis in front (`src/ops/batching.cpp` has a rule
for each family of operators). Nothing is computed twice, and what does not depend on the batch is
not batched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import vkml
from vkml import Tensor, _vkml
from vkml.tracing import recording_only
from vkml.trees import broadcast_prefix, flatten, unflatten

Function = Callable[..., Any]


def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "same",
    *,
    chunk_size: int | None = None,
) -> Function:
    """Maps a function over one axis of its arguments.

    Elementwise operators, reductions, scans, sorting, products, views, concatenation, gather and
    scatter take a batch, and so do all functions made of them, gradients included. Convolution and
    pooling do not: they have an axis for batches already. Random draws are made once, and are the
    same for every example.

    Args:
        func: A function of single examples. It may not read values (`item()`, `if x > 0`).
        in_dims: The axis that is mapped over, for all arguments, or one for each, in their
            structure; None for what all examples share.
        out_dims: Where the axis goes in the results; None for results that do not depend on the
            batch.
        randomness: `same`: random draws are made once, and are the same for every example.
        chunk_size: How many examples are computed at once; all if None.

    Returns:
        A function of whole batches. Keyword arguments go to `func` as they are.

    Raises:
        ArgumentError: The batches differ in size, or nothing is mapped over.
        UnsupportedError: An operator takes no batch (the message names it), a value would have more
            than four axes, or the function reads a value.
    """
    if randomness not in ("same", "error"):
        raise vkml.ArgumentError(
            f"[vmap] randomness is {randomness!r}. Draws are the same for every example: pass "
            "'same', and draw outside what differs."
        )
    if chunk_size is not None:
        if chunk_size < 1:
            raise vkml.ArgumentError(f"[vmap] chunk_size is {chunk_size}. Pass a number from 1.")
        return _in_chunks(
            func, vmap(func, in_dims, out_dims, randomness), chunk_size, in_dims, out_dims
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        tensors = flatten(args)
        axes = broadcast_prefix(in_dims, args, "in_dims")
        batches = [
            None if axis is None else _batch_first(tensor, axis)
            for tensor, axis in zip(tensors, axes, strict=True)
        ]
        size = _common_size([batch for batch in batches if batch is not None])
        examples = [
            tensor
            if batch is None
            else _vkml._placeholder(
                batch.shape[1:], batch.dtype, batch.device, tensor.requires_grad
            )
            for tensor, batch in zip(tensors, batches, strict=True)
        ]
        pairs = [
            (example, _vkml._pinned(example), batch)
            for example, batch in zip(examples, batches, strict=True)
            if batch is not None
        ]
        with recording_only():
            result = func(*unflatten(args, examples), **kwargs)
        outputs = flatten(result)
        places = broadcast_prefix(out_dims, result, "out_dims")
        written = [
            (example, batch)
            for example, before, batch in pairs
            if not _vkml._have_one_value(example, before)
        ]
        found = _vkml._vectorize(
            outputs + [example for example, _ in written],
            [before for _, before, _ in pairs],
            [batch for *_, batch in pairs],
        )
        # What the function wrote to an example, its batch gets.
        for (_, batch), (tensor, _) in zip(written, found[len(outputs) :], strict=True):
            batch.copy_(tensor)
        return unflatten(
            result,
            [
                _place(tensor, is_batched, size, place)
                for (tensor, is_batched), place in zip(found[: len(outputs)], places, strict=True)
            ],
        )

    return mapped


def _in_chunks(
    func: Function, mapped: Function, chunk_size: int, in_dims: Any, out_dims: Any
) -> Function:
    """A mapped function of a few examples at a time, whose results are joined."""

    @functools.wraps(func)
    def in_chunks(*args: Any, **kwargs: Any) -> Any:
        tensors = flatten(args)
        axes = broadcast_prefix(in_dims, args, "in_dims")
        size = _common_size(
            [_batch_first(t, a) for t, a in zip(tensors, axes, strict=True) if a is not None]
        )
        parts = []
        for start in range(0, max(size, 1), chunk_size):
            count = min(chunk_size, size - start)
            some = [
                tensor if axis is None else vkml.narrow(tensor, axis, start, count)
                for tensor, axis in zip(tensors, axes, strict=True)
            ]
            parts.append(mapped(*unflatten(args, some), **kwargs))
        places = broadcast_prefix(out_dims, parts[0], "out_dims")
        columns = zip(*(flatten(part) for part in parts), strict=True)
        joined = [
            column[0] if place is None else vkml.cat(list(column), place)
            for column, place in zip(columns, places, strict=True)
        ]
        return unflatten(parts[0], joined)

    return in_chunks


def _batch_first(tensor: Tensor, axis: int) -> Tensor:
    if not -tensor.ndim <= axis < tensor.ndim:
        raise vkml.ShapeError(
            f"[vmap] in_dims names axis {axis} of a tensor of shape {tuple(tensor.shape)}."
        )
    return tensor if axis % tensor.ndim == 0 else vkml.movedim(tensor, axis, 0)


def _common_size(batches: list[Tensor]) -> int:
    sizes = {int(batch.shape[0]) for batch in batches}
    if len(sizes) != 1:
        found = f"batches of sizes {sorted(sizes)}" if sizes else "nothing to map over"
        raise vkml.ArgumentError(
            f"[vmap] got {found}. in_dims names an axis of the same extent in each tensor that is "
            "mapped over."
        )
    return sizes.pop()


def _place(tensor: Tensor, is_batched: bool, size: int, place: int | None) -> Tensor:
    """A result with its batch at axis `place`."""
    if place is None:
        if is_batched:
            raise vkml.ArgumentError(
                "[vmap] out_dims is None for a result that differs between examples. Name an axis."
            )
        return tensor
    if not is_batched:
        tensor = tensor.unsqueeze(0).broadcast_to((size, *tensor.shape))
    return tensor if place % tensor.ndim == 0 else vkml.movedim(tensor, 0, place)
