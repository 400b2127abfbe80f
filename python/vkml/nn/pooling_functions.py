"""Pooling over one and two axes: windows of one size, and windows that divide an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import vkml
from vkml import Tensor
from vkml._vkml import _scatter_as
from vkml.mixed_precision import through_float32
from vkml.nn.pairs import IntOrPair, as_pair, as_single

OptionalPair = int | None | tuple[int | None, int | None]


def _batched(input: Tensor, axes: int, operator: str) -> Tensor:
    if input.ndim not in (axes + 1, axes + 2):
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(input.shape)}. Pass (batch, channels) and {axes} "
            f"axes of positions, or no batch."
        )
    return input if input.ndim == axes + 2 else input.unsqueeze(0)


def max_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window; padding never wins.

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        kernel_size: Window extents, for both axes or for each.
        stride: Steps of the window; `kernel_size` if None.
        padding: Elements added on each side, smaller than every number.
        dilation: Distance between window elements.
        ceil_mode: Whether a last window that starts inside may reach past the padding.
        return_indices: Whether positions row * width + column (int32) are returned too.
    """
    batched = _batched(input, 2, "max_pool2d")
    kernel = as_pair(kernel_size)
    steps = kernel if stride is None else as_pair(stride)
    sizes = (kernel, steps, as_pair(padding), as_pair(dilation), ceil_mode)
    if not return_indices:
        result = vkml.max_pool2d(batched, *sizes)
        return result if input.ndim == 4 else result.squeeze(0)
    values, indices = vkml.max_pool2d_with_indices(batched, *sizes)
    return (values, indices) if input.ndim == 4 else (values.squeeze(0), indices.squeeze(0))


def max_pool1d(
    input: Tensor,
    kernel_size: int | tuple[int],
    stride: int | tuple[int] | None = None,
    padding: int | tuple[int] = 0,
    dilation: int | tuple[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`max_pool2d` over one axis, of (batch, channels, length) or without the batch."""
    batched = _batched(input, 1, "max_pool1d").unsqueeze(-2)
    result = max_pool2d(
        batched,
        (1, as_single(kernel_size)),
        None if stride is None else (1, as_single(stride)),
        (0, as_single(padding)),
        (1, as_single(dilation)),
        ceil_mode,
        return_indices,
    )
    shown = [
        part.squeeze(-2) if input.ndim == 3 else part.squeeze(-2).squeeze(0)
        for part in (result if isinstance(result, tuple) else (result,))
    ]
    return (shown[0], shown[1]) if return_indices else shown[0]


def _elements_inside(extent: int, kernel: int, stride: int, padding: int, count: int) -> list[int]:
    """How many elements of each window lie inside the axis."""
    starts = [i * stride - padding for i in range(count)]
    return [min(start + kernel, extent) - max(start, 0) for start in starts]


def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        kernel_size: Window extents, for both axes or for each.
        stride: Steps of the window; `kernel_size` if None.
        padding: Zeros added on each side.
        ceil_mode: Whether a last window that starts inside may reach past the padding.
        count_include_pad: Whether padding counts as elements of the mean.
        divisor_override: What sums are divided by, in place of the number of elements.
    """
    batched = _batched(input, 2, "avg_pool2d")
    kernel = as_pair(kernel_size)
    steps = kernel if stride is None else as_pair(stride)
    sides = as_pair(padding)
    counts_padding = count_include_pad and divisor_override is None
    result = vkml.avg_pool2d(batched, kernel, steps, sides, counts_padding, ceil_mode)
    if divisor_override is not None:
        # The mean of what lies inside, times how much that is.
        rows, columns = (
            _elements_inside(
                batched.shape[2 + i], kernel[i], steps[i], sides[i], result.shape[2 + i]
            )
            for i in range(2)
        )
        counts = [[row * column / divisor_override for column in columns] for row in rows]
        result = result * vkml.tensor(counts, dtype=result.dtype, device=result.device)
    return result if input.ndim == 4 else result.squeeze(0)


def avg_pool1d(
    input: Tensor,
    kernel_size: int | tuple[int],
    stride: int | tuple[int] | None = None,
    padding: int | tuple[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` over one axis, of (batch, channels, length) or without the batch."""
    batched = _batched(input, 1, "avg_pool1d").unsqueeze(-2)
    result = avg_pool2d(
        batched,
        (1, as_single(kernel_size)),
        None if stride is None else (1, as_single(stride)),
        (0, as_single(padding)),
        ceil_mode,
        count_include_pad,
    ).squeeze(-2)
    return result if input.ndim == 3 else result.squeeze(0)


def _power_mean(mean: Tensor, count: int, norm_type: float) -> Tensor:
    total = mean * count
    has_root = total != 0
    # The root's gradient at 0 is infinite: no sum, no gradient.
    return vkml.where(has_root, vkml.where(has_root, total, 1.0) ** (1.0 / norm_type), 0.0)


@through_float32
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The `norm_type`-norm of each window: (sum(x^p))^(1 / p).

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        norm_type: The exponent p.
        kernel_size: Window extents, for both axes or for each.
        stride: Steps of the window; `kernel_size` if None.
        ceil_mode: Whether a last window that starts inside may reach past the end.
    """
    kernel = as_pair(kernel_size)
    mean = avg_pool2d(input**norm_type, kernel, stride, 0, ceil_mode)
    return _power_mean(mean, kernel[0] * kernel[1], norm_type)


@through_float32
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | tuple[int],
    stride: int | tuple[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`lp_pool2d` over one axis, of (batch, channels, length) or without the batch."""
    kernel = as_single(kernel_size)
    mean = avg_pool1d(input**norm_type, kernel, stride, 0, ceil_mode)
    return _power_mean(mean, kernel, norm_type)


def _dividing_windows(extent: int, count: int, operator: str) -> tuple[list[int], list[int]]:
    """First and past-the-last element of windows that divide an axis; they may overlap."""
    if count < 1 or extent < 1:
        raise vkml.ShapeError(f"[{operator}] {extent} elements do not divide into {count} windows.")
    starts = [i * extent // count for i in range(count)]
    return starts, [-((-(i + 1) * extent) // count) for i in range(count)]


def _reduce_windows(
    input: Tensor,
    axis: int,
    count: int,
    operator: str,
    reduce: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Replaces an axis by `reduce(elements, inside, positions)` over windows that divide it.

    Elements have shape (outer, windows, longest, inner); shorter windows repeat their last element.
    """
    starts, ends = _dividing_windows(input.shape[axis], count, operator)
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    spans = [
        [min(start + k, end - 1) for k in range(longest)]
        for start, end in zip(starts, ends, strict=True)
    ]
    inside = [
        [start + k < end for k in range(longest)] for start, end in zip(starts, ends, strict=True)
    ]
    shape = tuple(input.shape)
    outer, inner = 1, 1
    for extent in shape[:axis]:
        outer *= extent
    for extent in shape[axis + 1 :]:
        inner *= extent
    positions = vkml.tensor(spans, dtype=vkml.int32, device=input.device)
    elements = vkml.take(input.reshape(outer, shape[axis], inner), positions, axis=1)
    mask = vkml.tensor(inside, device=input.device).unsqueeze(-1)
    result = reduce(elements, mask, positions)
    return result.reshape(*shape[:axis], count, *shape[axis + 1 :])


def _mean_of_windows(elements: Tensor, inside: Tensor, positions: Tensor) -> Tensor:
    counts = inside.to(elements.dtype).sum(1)
    return vkml.where(inside, elements, 0.0).sum(2) / counts


def _output_sizes(size: OptionalPair, extents: tuple[int, int]) -> tuple[int, int]:
    rows, columns = size if isinstance(size, tuple | list) else (size, size)
    return (extents[0] if rows is None else rows, extents[1] if columns is None else columns)


def adaptive_avg_pool2d(input: Tensor, output_size: OptionalPair) -> Tensor:
    """The mean of windows that divide both axes, as many as `output_size` asks for.

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        output_size: Extents of the result, for both axes or for each; None keeps an extent. Where
            they do not divide the input's, windows overlap.
    """
    _batched(input, 2, "adaptive_avg_pool2d")
    height, width = input.shape[-2:]
    rows, columns = _output_sizes(output_size, (height, width))
    if (rows, columns) == (1, 1):
        return input.mean((-2, -1), keepdim=True)
    if rows > 0 and columns > 0 and height % rows == 0 and width % columns == 0:
        return avg_pool2d(input, (height // rows, width // columns))
    operator = "adaptive_avg_pool2d"
    result = _reduce_windows(input, input.ndim - 2, rows, operator, _mean_of_windows)
    return _reduce_windows(result, input.ndim - 1, columns, operator, _mean_of_windows)


def adaptive_avg_pool1d(input: Tensor, output_size: int | tuple[int]) -> Tensor:
    """`adaptive_avg_pool2d` over one axis."""
    batched = _batched(input, 1, "adaptive_avg_pool1d").unsqueeze(-2)
    result = adaptive_avg_pool2d(batched, (1, as_single(output_size))).squeeze(-2)
    return result if input.ndim == 3 else result.squeeze(0)


def _first_largest(elements: Tensor, inside: Tensor, positions: Tensor) -> Tensor:
    """Position along the axis of the first largest element of each window."""
    place = elements.detach().argmax(2, keepdim=True)
    spread = positions.unsqueeze(-1).broadcast_to(elements.shape[1:]).unsqueeze(0)
    return vkml.gather(spread.broadcast_to(elements.shape), 2, place).squeeze(2)


def adaptive_max_pool2d(
    input: Tensor, output_size: OptionalPair, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of windows that divide both axes; arguments as `adaptive_avg_pool2d`.

    Args:
        input: Shape (batch, channels, height, width), or without the batch.
        output_size: Extents of the result.
        return_indices: Whether positions row * width + column (int32) are returned too.
    """
    _batched(input, 2, "adaptive_max_pool2d")
    rows, columns = _output_sizes(output_size, tuple(input.shape[-2:]))
    operator, axis = "adaptive_max_pool2d", input.ndim - 2
    # Along a row first, then down the columns of what was found: the first of equals in row-major
    # order, as in max_pool2d.
    column = _reduce_windows(input, axis + 1, columns, operator, _first_largest)
    along_rows = vkml.gather(input, axis + 1, column)
    row = _reduce_windows(along_rows, axis, rows, operator, _first_largest)
    values = vkml.gather(along_rows, axis, row)
    if not return_indices:
        return values
    return values, row * input.shape[-1] + vkml.gather(column, axis, row)


def adaptive_max_pool1d(
    input: Tensor, output_size: int | tuple[int], return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` over one axis."""
    batched = _batched(input, 1, "adaptive_max_pool1d").unsqueeze(-2)
    values, indices = adaptive_max_pool2d(batched, (1, as_single(output_size)), True)
    values, indices = values.squeeze(-2), indices.squeeze(-2)
    if input.ndim == 2:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


def _unpooled(
    input: Tensor, indices: Tensor, sizes: list[tuple[int, int, int]], given: Sequence[int] | None
) -> Tensor:
    """Maxima back at their places; `sizes` has kernel, stride and padding of each axis."""
    operator = f"max_unpool{len(sizes)}d"
    lead = input.shape[: input.ndim - len(sizes)]
    extents = tuple(
        (count - 1) * stride - 2 * padding + kernel
        for count, (kernel, stride, padding) in zip(input.shape[len(lead) :], sizes, strict=True)
    )
    if given is not None:
        extents = tuple(given)[-len(sizes) :]
    count = 1
    for extent in extents:
        count *= extent
    flat = vkml.zeros((*lead, count), dtype=input.dtype, device=input.device)
    source, index = (
        each.reshape(*lead, math.prod(each.shape[len(lead) :])) for each in (input, indices)
    )
    return _scatter_as(operator, flat, -1, index, source).reshape(*lead, *extents)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | tuple[int],
    stride: int | tuple[int] | None = None,
    padding: int | tuple[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Undoes `max_pool1d` but for what was not a maximum, which is 0.

    Args:
        input: Maxima, shape (batch, channels, windows), or no batch.
        indices: Their positions, as `max_pool1d(return_indices=True)` gives them.
        kernel_size: The window that they came from.
        stride: Its step; the kernel size if None.
        padding: What was added at both ends.
        output_size: The length of the result, where several would give as many windows.
    """
    kernel = as_single(kernel_size)
    step = kernel if stride is None else as_single(stride)
    added = as_single(padding)
    return _unpooled(input, indices, [(kernel, step, added)], output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """`max_unpool1d` of images (batch, channels, height, width), or no batch."""
    kernel = as_pair(kernel_size)
    step = kernel if stride is None else as_pair(stride)
    added = as_pair(padding)
    return _unpooled(input, indices, list(zip(kernel, step, added, strict=True)), output_size)
