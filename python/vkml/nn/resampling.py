"""Layers that change an image's extents without parameters: Upsample, shuffles, padding."""

from __future__ import annotations

from collections.abc import Sequence

from vkml import Tensor
from vkml.nn import functional
from vkml.nn.module import Module


class Upsample(Module):
    """The input at another number of positions; arguments as `functional.interpolate`."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, positions...) to other extents of the positions."""
        return functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        target = f"size={self.size}" if self.size else f"scale_factor={self.scale_factor}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images by their nearest pixels."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images by bilinear interpolation between corners that stay in place."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Channels as pixels; arguments as `functional.pixel_shuffle`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels * r * r, height, width) to (batch, channels, height * r, ...)."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels as channels; arguments as `functional.pixel_unshuffle`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height * r, width * r) to (batch, channels * r * r, ...)."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of several groups in turn; arguments as `functional.channel_shuffle`."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, positions...) to the same shape."""
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"groups={self.groups}"


class _Pad(Module):
    """Padding of the last axes: (before, after) for each from the last on, or one number."""

    _mode = "constant"
    _axes = 2

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding: tuple[int, ...]
        if isinstance(padding, int):
            self.padding = (padding,) * (2 * self._axes)
        else:
            self.padding = tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, positions...) to larger extents of the positions."""
        return functional.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with one value."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, positions...) to larger extents of the positions."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A value at both ends of the last axis."""

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """A value around the last two axes."""


class ZeroPad1d(_Pad):
    """Zeros at both ends of the last axis."""

    _axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""


class ReflectionPad1d(_Pad):
    """The last axis mirrored at its ends, without them."""

    _mode, _axes = "reflect", 1


class ReflectionPad2d(_Pad):
    """The last two axes mirrored at their ends, without them."""

    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """The outermost elements of the last axis repeated."""

    _mode, _axes = "replicate", 1


class ReplicationPad2d(_Pad):
    """The outermost elements of the last two axes repeated."""

    _mode = "replicate"


class CircularPad1d(_Pad):
    """The last axis continued from its other end."""

    _mode, _axes = "circular", 1


class CircularPad2d(_Pad):
    """The last two axes continued from their other ends."""

    _mode = "circular"
