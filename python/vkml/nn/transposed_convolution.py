"""Transposed convolutions, and windows as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vkml
from vkml import Tensor
from vkml.nn import functional
from vkml.nn.convolution import Convolution
from vkml.nn.module import Module
from vkml.nn.pairs import IntOrPair, as_pair, as_single


class _Transposed(Convolution):
    """A kernel of shape (in_channels, out_channels / groups, *size), and how it is laid."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        size: tuple[int, ...],
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        dilation: Any,
        padding_mode: str,
        device: vkml.DeviceLike | None,
        dtype: vkml.dtype | None,
    ) -> None:
        shape = (in_channels, out_channels // max(groups, 1), *size)
        if padding_mode != "zeros":
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] padding_mode is {padding_mode!r}. A transposed "
                "convolution takes away what padding adds: pass 'zeros'."
            )
        super().__init__(
            in_channels, out_channels, groups, shape, bias, padding_mode, device, dtype
        )
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation

    def _layout(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[Any, ...]:
        """The functions' arguments behind the bias."""
        added = self.output_padding
        if output_size is not None:
            added = self._output_padding(input, tuple(output_size))
        return self.stride, self.padding, added, self.groups, self.dilation

    def _output_padding(self, input: Tensor, output_size: tuple[int, ...]) -> tuple[int, ...]:
        """What has to be added for a result of these extents."""
        axes = self.weight.ndim - 2
        each = [
            (value,) * axes if isinstance(value, int) else tuple(value)
            for value in (self.stride, self.padding, self.dilation)
        ]
        least = tuple(
            (extent - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            for extent, stride, padding, dilation, kernel in zip(
                input.shape[-axes:], *each, self.weight.shape[2:], strict=True
            )
        )
        added = tuple(want - have for want, have in zip(output_size[-axes:], least, strict=False))
        fits = len(output_size) in (axes, input.ndim) and all(
            0 <= extra < stride for extra, stride in zip(added, each[0], strict=True)
        )
        if not fits:
            raise vkml.ShapeError(
                f"[{type(self).__name__}] output_size {output_size} is not from {least} to less "
                f"than a stride {each[0]} more."
            )
        return added


class ConvTranspose1d(_Transposed):
    """The gradient of Conv1d with respect to its input, as a layer; as `ConvTranspose2d`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] = 1,
        padding: int | tuple[int] = 0,
        output_padding: int | tuple[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int] = 1,
        padding_mode: str = "zeros",
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            (as_single(kernel_size),),
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Maps (batch, in_channels, length) to (batch, out_channels, ...).

        Of the lengths that a stride makes possible `output_size` chooses, instead of
        `output_padding`.
        """
        layout = self._layout(input, output_size)
        return functional.conv_transpose1d(input, self.weight, self.bias, *layout)


class ConvTranspose2d(_Transposed):
    """The gradient of Conv2d with respect to its input, as a layer.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the result.
        kernel_size: Extents of the kernels, for both axes or for each.
        stride: Distance between input elements in the result.
        padding: Rows and columns cut off each side of the result.
        output_padding: Rows and columns added at its end, smaller than the stride.
        groups: Blocks of channels that do not see each other; divides both channel counts.
        bias: Whether there is an offset.
        dilation: Distance between kernel elements.
        padding_mode: `zeros`, PyTorch's only one.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: IntOrPair = 1,
        padding_mode: str = "zeros",
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            as_pair(kernel_size),
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Maps (batch, in_channels, height, width) to (batch, out_channels, ...).

        Of the extents that a stride makes possible `output_size` chooses, instead of
        `output_padding`.
        """
        layout = self._layout(input, output_size)
        return functional.conv_transpose2d(input, self.weight, self.bias, *layout)


class Unfold(Module):
    """Windows as columns; arguments as `functional.unfold`."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        dilation: IntOrPair = 1,
        padding: IntOrPair = 0,
        stride: IntOrPair = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to (batch, channels * window, windows)."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return _of_windows(self)


def _of_windows(module: Any) -> str:
    """How windows lie, as text."""
    names = ("kernel_size", "dilation", "padding", "stride")
    return ", ".join(f"{name}={getattr(module, name)}" for name in names)


class Fold(Module):
    """The sum of columns where their windows lie; arguments as `functional.fold`."""

    def __init__(
        self,
        output_size: IntOrPair,
        kernel_size: IntOrPair,
        dilation: IntOrPair = 1,
        padding: IntOrPair = 0,
        stride: IntOrPair = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels * window, windows) to (batch, channels, *output_size)."""
        return functional.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"output_size={self.output_size}, {_of_windows(self)}"
