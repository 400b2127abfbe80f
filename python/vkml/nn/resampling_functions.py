"""Images of other sizes: interpolation, pixel shuffles, padding.

Interpolation is separable: along one axis, each result is a weighted sum of a few elements, whose
positions and weights depend on extents alone and are computed on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import vkml
from vkml import Tensor
from vkml.nn.pooling_functions import adaptive_avg_pool1d, adaptive_avg_pool2d

_AXES_OF_MODE = {"linear": 1, "bilinear": 2, "bicubic": 2}
_CUBIC = -0.75  # the parameter a of cubic convolution (Keys, IEEE TASSP 29, 1981)
_SMOOTH_CUBIC = -0.5  # that of the filter that PyTorch and Pillow take against aliasing

Taps = list[tuple[int, float]]


def _centre(position: int, scale: float, extent: int, count: int, align_corners: bool) -> float:
    """Where a result lies among the elements of an axis."""
    if align_corners:
        return position * (extent - 1) / (count - 1) if count > 1 else 0.0
    return (position + 0.5) * scale - 0.5


def _linear_taps(centre: float, extent: int) -> Taps:
    place = min(max(centre, 0.0), extent - 1.0)
    first = min(int(place), extent - 1)
    return [(first, 1.0 - (place - first)), (min(first + 1, extent - 1), place - first)]


def _cubic_taps(centre: float, extent: int) -> Taps:
    first = math.floor(centre)
    t = centre - first
    a = _CUBIC

    def near(x: float) -> float:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: float) -> float:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    return [(min(max(first - 1 + k, 0), extent - 1), weight) for k, weight in enumerate(weights)]


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float) -> float:
    x, a = abs(x), _SMOOTH_CUBIC
    if x < 1.0:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2.0 else 0.0


def _filtered(
    scale: float, extent: int, count: int, kernel: Callable[[float], float], reach: float
) -> list[Taps]:
    """Taps of a filter that is as wide as a result's element, in the place of a fixed number.

    Where an axis shrinks every element counts, so that nothing finer than the result shows up in
    it as something coarser.
    """
    widened = max(scale, 1.0)
    rows: list[Taps] = []
    for i in range(count):
        centre = scale * (i + 0.5)
        first = max(int(centre - reach * widened + 0.5), 0)
        past = min(int(centre + reach * widened + 0.5), extent)
        weights = [kernel((k - centre + 0.5) / widened) for k in range(first, past)]
        total = sum(weights)
        rows.append([(first + k, weight / total) for k, weight in enumerate(weights)])
    longest = max(len(row) for row in rows)
    return [row + [(row[-1][0], 0.0)] * (longest - len(row)) for row in rows]


def _split_at(input: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...]]:
    """The tensor as (before, axis, after), and its own shape."""
    shape = tuple(input.shape)
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return input.reshape(before, shape[axis], after), shape


def _weighted(input: Tensor, axis: int, taps: list[Taps]) -> Tensor:
    """Replaces an axis by weighted sums of its elements."""
    lines, shape = _split_at(input, axis)
    positions = vkml.tensor(
        [[position for position, _ in row] for row in taps], dtype=vkml.int32, device=input.device
    )
    weights = vkml.tensor(
        [[weight for _, weight in row] for row in taps], dtype=input.dtype, device=input.device
    )
    result = (vkml.take(lines, positions, axis=1) * weights.unsqueeze(-1)).sum(2)
    return result.reshape(*shape[:axis], len(taps), *shape[axis + 1 :])


def _nearest(input: Tensor, axis: int, count: int, scale: float, offset: float) -> Tensor:
    extent = input.shape[axis]
    if count % extent == 0 and scale == extent / count:
        return vkml.repeat_interleave(input, count // extent, axis)
    positions = [min(int((i + offset) * scale), extent - 1) for i in range(count)]
    index = vkml.tensor(positions, dtype=vkml.int32, device=input.device)
    return vkml.index_select(input, axis, index)


def _sizes(
    extents: Sequence[int],
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    recompute: bool,
) -> list[tuple[int, float]]:
    """The result's extent along each axis, and how far apart its elements lie in the input."""
    axes = len(extents)
    if (size is None) == (scale_factor is None):
        raise vkml.ArgumentError("[interpolate] Pass one of size and scale_factor.")
    if size is not None:
        counts = [size] * axes if isinstance(size, int) else list(size)
        steps = [extent / count for extent, count in zip(extents, counts, strict=True)]
    else:
        factors = (
            [float(scale_factor)] * axes
            if isinstance(scale_factor, int | float)
            else [float(factor) for factor in scale_factor or ()]
        )
        counts = [math.floor(e * f) for e, f in zip(extents, factors, strict=True)]
        steps = [1.0 / factor for factor in factors]
        if recompute:
            steps = [extent / count for extent, count in zip(extents, counts, strict=True)]
    if min(counts) < 1 or min(extents) < 1:
        raise vkml.ShapeError(f"[interpolate] from {tuple(extents)} to {tuple(counts)} elements.")
    return list(zip(counts, steps, strict=True))


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The tensor at another number of positions.

    Args:
        input: Shape (batch, channels, length) or (batch, channels, height, width).
        size: Extents of the result.
        scale_factor: What extents are multiplied by, in place of `size`.
        mode: `nearest`, `nearest-exact`, `linear` (of a length), `bilinear` or `bicubic` (of an
            image), or `area`, the mean of the elements that a result's element covers.
        align_corners: Whether the outermost elements, rather than their outer edges, coincide; not
            for the nearest modes and `area`.
        recompute_scale_factor: Whether positions follow from the extents where they were rounded.
        antialias: Whether the filter of `bilinear` and `bicubic` is as wide as a result's element
            where an axis shrinks.
    """
    axes = input.ndim - 2
    if axes not in (1, 2):
        raise vkml.ShapeError(
            f"[interpolate] input has shape {tuple(input.shape)}. Pass (batch, channels, length) "
            f"or (batch, channels, height, width)."
        )
    is_nearest = mode in ("nearest", "nearest-exact")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise vkml.ArgumentError(
            f"[interpolate] antialias is for 'bilinear' and 'bicubic', not for mode={mode!r}."
        )
    if mode == "area" and align_corners is not None:
        raise vkml.ArgumentError("[interpolate] align_corners is not for mode='area'.")
    if not is_nearest and mode != "area" and _AXES_OF_MODE.get(mode) != axes:
        raise vkml.ArgumentError(
            f"[interpolate] mode is {mode!r} for {axes} axes of positions. Pass 'nearest', "
            f"'nearest-exact', 'area', 'linear' (one axis), 'bilinear' or 'bicubic' (two)."
        )
    if is_nearest and align_corners is not None:
        raise vkml.ArgumentError("[interpolate] align_corners is not for the nearest modes.")
    result = input
    wanted = _sizes(tuple(input.shape[2:]), size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        counts = [count for count, _ in wanted]
        if axes == 1:
            return adaptive_avg_pool1d(input, counts[0])
        return adaptive_avg_pool2d(input, (counts[0], counts[1]))
    for axis, (count, step) in enumerate(wanted, start=2):
        if is_nearest:
            result = _nearest(result, axis, count, step, 0.5 if mode == "nearest-exact" else 0.0)
            continue
        extent = input.shape[axis]
        if antialias:
            scale = step
            if align_corners:
                scale = (extent - 1) / (count - 1) if count > 1 else 0.0
            kernel, reach = (_cubic, 2.0) if mode == "bicubic" else (_triangle, 1.0)
            taps = _filtered(scale, extent, count, kernel, reach)
            result = _weighted(result, axis, taps)
            continue
        taps_at: Callable[[float, int], Taps] = _cubic_taps if mode == "bicubic" else _linear_taps
        centres = [_centre(i, step, extent, count, bool(align_corners)) for i in range(count)]
        result = _weighted(result, axis, [taps_at(centre, extent) for centre in centres])
    return result


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels (Shi et al., 2016).

    Args:
        input: Shape (batch, channels * r * r, height, width), or without the batch.
        upscale_factor: The factor r.

    Returns:
        Shape (batch, channels, height * r, width * r).
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r) != 0:
        raise vkml.ShapeError(
            f"[pixel_shuffle] {tuple(input.shape)} has no channels in groups of {r} * {r}."
        )
    channels, height, width = input.shape[-3] // (r * r), input.shape[-2], input.shape[-1]
    outer = math.prod(input.shape[:-3]) * channels
    # One factor at a time: six axes at once exceed the rank limit.
    columns = input.reshape(outer * r, r, height * width).transpose(1, 2)
    rows = columns.reshape(outer, r, height, width * r).transpose(1, 2)
    return rows.reshape(*input.shape[:-3], channels, height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels as channels: what `pixel_shuffle` undoes."""
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-2] % r != 0 or input.shape[-1] % r != 0:
        raise vkml.ShapeError(
            f"[pixel_unshuffle] {tuple(input.shape)} does not divide into blocks of {r} by {r}."
        )
    channels, height, width = input.shape[-3], input.shape[-2] // r, input.shape[-1] // r
    outer = math.prod(input.shape[:-3]) * channels
    rows = input.reshape(outer, height, r, width * r).transpose(1, 2)
    columns = rows.reshape(outer * r, height * width, r).transpose(1, 2)
    return columns.reshape(*input.shape[:-3], channels * r * r, height, width)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of several groups in turn (Zhang et al., 2018), of (batch, channels, ...)."""
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups != 0:
        raise vkml.ShapeError(
            f"[channel_shuffle] {tuple(input.shape)} has no channels in {groups} groups."
        )
    batch, channels = input.shape[0], input.shape[1]
    positions = math.prod(input.shape[2:])
    shuffled = input.reshape(batch, groups, channels // groups, positions).transpose(1, 2)
    return shuffled.reshape(*input.shape)


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Adds elements at both ends of the last axes.

    Args:
        input: Any shape.
        pad: (before, after) for the last axis, then for the one before it, and so on; negative
            amounts crop.
        mode: `constant`, or elements of the input: `reflect` (without the edge), `replicate` (the
            edge), `circular` (the other end).
        value: What `constant` adds; 0 if None.
    """
    return vkml.pad(input, tuple(pad), mode, 0.0 if value is None else value)
