"""Images read at positions that are data: affine grids, and sampling between pixels.

A sample is a weighted sum of pixels whose numbers are computed on the device: a gather for each
pixel of the window. Bound by those gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import vkml
from vkml import Tensor

_CUBIC = -0.75  # the parameter a of cubic convolution (Keys, IEEE TASSP 29, 1981)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions that an affine map gives each pixel of an image.

    Args:
        theta: Shape (batch, 2, 3): the maps, on (x, y, 1) with x and y in [-1, 1].
        size: (batch, channels, height, width) of the image to sample.
        align_corners: Whether -1 and 1 are the centres of the outermost pixels, or their edges.

    Returns:
        Shape (batch, height, width, 2): what `grid_sample` takes.
    """
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (2, 3) or len(size) != 4:
        raise vkml.ShapeError(
            f"[affine_grid] theta has shape {theta.shape} and size {tuple(size)}. Pass "
            f"(batch, 2, 3) and (batch, channels, height, width)."
        )
    batch, _, height, width = size

    def places(count: int) -> Tensor:
        place = vkml.arange(count, dtype=theta.dtype, device=theta.device)
        if align_corners:
            return place * (2 / (count - 1)) - 1 if count > 1 else place
        return (place * 2 + 1) / count - 1

    x = places(width).reshape(1, width).broadcast_to((height, width)).reshape(-1)
    y = places(height).reshape(height, 1).broadcast_to((height, width)).reshape(-1)
    base = vkml.stack([x, y, vkml.ones_like(x)], -1)
    return (base @ theta.transpose(1, 2)).reshape(batch, height, width, 2)


def _reflected(place: Tensor, low: float, high: float) -> Tensor:
    """A position folded back into [low, high] at either end, as often as it takes."""
    span = high - low
    if span <= 0:
        return vkml.zeros_like(place)
    distance = vkml.abs(place - low)
    return low + span - vkml.abs(vkml.remainder(distance, 2 * span) - span)


class _Axis:
    """Positions along one axis of an image."""

    def __init__(self, grid: Tensor, extent: int, padding: str, align_corners: bool) -> None:
        self.extent, self.padding, self.align_corners = extent, padding, align_corners
        scaled = (
            (grid + 1) * ((extent - 1) / 2) if align_corners else ((grid + 1) * extent - 1) * 0.5
        )
        self.exact = scaled

    def bounded(self, place: Tensor) -> Tensor:
        """A position as padding has it: inside the image unless it is zeros."""
        if self.padding == "reflection":
            ends = (0.0, self.extent - 1.0) if self.align_corners else (-0.5, self.extent - 0.5)
            place = _reflected(place, *ends)
        if self.padding == "zeros":
            return place
        return vkml.clamp(place, 0.0, self.extent - 1.0)

    def pixel(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """The number of the pixel at a whole position, and whether there is one."""
        inside = vkml.logical_and(place >= 0, place <= self.extent - 1)
        return vkml.clamp(place, 0.0, self.extent - 1.0).to(vkml.int32), inside


Taps = list[tuple[Tensor, Tensor]]  # whole positions along an axis, and their weights


def _nearest_taps(axis: _Axis) -> Taps:
    place = vkml.round(axis.bounded(axis.exact)).detach()
    return [(place, vkml.ones_like(place))]


def _linear_taps(axis: _Axis) -> Taps:
    place = axis.bounded(axis.exact)
    first = vkml.floor(place).detach()
    share = place - first
    return [(first, 1 - share), (first + 1, share)]


def _cubic_taps(axis: _Axis) -> Taps:
    first = vkml.floor(axis.exact).detach()
    t = axis.exact - first
    a = _CUBIC

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    return [(axis.bounded(first + (k - 1)), weight) for k, weight in enumerate(weights)]


_TAPS: dict[str, Callable[[_Axis], Taps]] = {
    "nearest": _nearest_taps,
    "bilinear": _linear_taps,
    "bicubic": _cubic_taps,
}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """An image at given positions, with gradients of image and positions.

    Args:
        input: Shape (batch, channels, height, width).
        grid: Shape (batch, rows, columns, 2): x and y, -1 and 1 at the ends of the image.
        mode: `bilinear`, `nearest` (ties to even) or `bicubic`.
        padding_mode: What is outside: `zeros`, `border` (the edge) or `reflection`.
        align_corners: Whether -1 and 1 are the centres of the outermost pixels, or their edges.

    Returns:
        Shape (batch, channels, rows, columns).
    """
    if input.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != input.shape[0]:
        raise vkml.ShapeError(
            f"[grid_sample] input has shape {input.shape} and grid {grid.shape}. Pass (batch, "
            f"channels, height, width) and (batch, rows, columns, 2)."
        )
    if mode not in _TAPS or padding_mode not in ("zeros", "border", "reflection"):
        raise vkml.ArgumentError(
            f"[grid_sample] mode is {mode!r} and padding_mode {padding_mode!r}. Pass 'bilinear', "
            f"'nearest' or 'bicubic', and 'zeros', 'border' or 'reflection'."
        )
    batch, channels, height, width = input.shape
    if height == 0 or width == 0:
        raise vkml.ShapeError(f"[grid_sample] input of shape {input.shape} has no pixels.")
    rows, columns = grid.shape[1], grid.shape[2]
    places = grid.reshape(batch, 1, rows * columns, 2)
    x = _Axis(places[..., 0], width, padding_mode, bool(align_corners))
    y = _Axis(places[..., 1], height, padding_mode, bool(align_corners))
    pixels = input.reshape(batch, channels, height * width)
    shape = (batch, channels, rows * columns)
    result: Tensor | None = None
    for down, weight_down in _TAPS[mode](y):
        row, is_row = y.pixel(down)
        for across, weight_across in _TAPS[mode](x):
            column, is_column = x.pixel(across)
            index = (row * width + column).broadcast_to(shape)
            weight = weight_down * weight_across
            if padding_mode == "zeros":
                weight = vkml.where(vkml.logical_and(is_row, is_column), weight, 0.0)
            part = vkml.gather(pixels, 2, index) * weight
            result = part if result is None else result + part
    assert result is not None
    return result.reshape(batch, channels, rows, columns)
