"""Shapes and places of elements, by the Array API's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vkml
from vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

Axes = int | tuple[int, ...]


def _axis(operator: str, axis: int, rank: int) -> int:
    """The axis counted from 0. Raises IndexError, as the standard asks."""
    if not -rank <= axis < rank:
        raise vkml.IndexError(f"[{operator}] axis {axis} is outside [{-rank}, {rank})")
    return axis % rank


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes have in common: axes align at the end, extents of 1 repeat.

    Raises:
        ShapeError: For extents that differ where neither is 1.
    """
    result: list[int] = []
    for shape in shapes:
        result[:0] = [1] * (len(shape) - len(result))
        for axis in range(-len(shape), 0):
            if shape[axis] not in (1, result[axis]):
                if result[axis] != 1:
                    raise vkml.ShapeError(f"[broadcast_shapes] {shapes} have no shape in common")
                result[axis] = shape[axis]
    return tuple(result)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A tensor's elements repeated to fill a shape.

    A tensor of its own, for programs written for NumPy write to parts of it; `vkml.broadcast_to`
    gives a view.
    """
    return vkml.broadcast_to(x, shape).clone()


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors of the shape they have in common; see `broadcast_to`."""
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return tuple(broadcast_to(array, shape) for array in arrays)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis, in the dtype in which they meet; None flattens them first."""
    if axis is None:
        return vkml.concat([array.reshape(-1) for array in arrays], 0)
    return vkml.concat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis, in the dtype in which they meet."""
    return vkml.stack(arrays, axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as views without it."""
    return tuple(vkml.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A view with an axis of extent 1 more. Raises IndexError for a place that does not exist."""
    return x.unsqueeze(_axis("expand_dims", axis, x.ndim + 1))


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes of extent 1. Raises ShapeError for another extent."""
    axes = (axis,) if isinstance(axis, int) else axis
    for named in axes:
        extent = x.shape[_axis("squeeze", named, x.ndim)]
        if extent != 1:
            raise vkml.ShapeError(f"[squeeze] axis {named} of shape {x.shape} is not of extent 1")
    return x.squeeze(axes) if axes else x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Elements in reverse order along axes, or along all."""
    return vkml.flip(x, axis)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Elements moved along axes, those that leave coming in at the other end."""
    axes = () if axis is None else (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) * max(len(axes), 1) if isinstance(shift, int) else shift
    return vkml.roll(x, shifts, None if axis is None else axes)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with axes in other places, the rest in their order."""
    return vkml.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order."""
    return vkml.permute(x, axes)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Other extents, one of which may be -1.

    Args:
        x: Any tensor.
        shape: The extents of the result.
        copy: True makes a tensor of its own always, None where need be, False never.

    Raises:
        ArgumentError: With copy=False, where strides need a copy.
    """
    if copy is False and not x.is_contiguous():
        raise vkml.ArgumentError(
            f"[reshape] copy=False, and strides {x.strides} may need one. Pass copy=None"
        )
    result = vkml.reshape(x, shape)
    return result.clone() if copy else result


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or slice along an axis, several times; counts in a tensor wait for it."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    counts: Any = repeats
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        counts = int(repeats.reshape(()))
    return vkml.repeat_interleave(x, counts, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The tensor set side by side along its axes, the last repetition along the last of them."""
    return vkml.tile(x, repetitions)


_check_arguments(globals(), __all__)
