"""Convolutions over one axis, transposed convolutions, and windows as columns."""

from __future__ import annotations

from typing import Literal

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.pairs import IntOrPair, as_pair, as_single
from vkml.nn.parameter import Parameter


class _Kernel(Module):
    """A learned kernel and an offset.

    Attributes:
        weight: The kernel.
        bias: Shape (out_channels,), or None.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        groups: int,
        shape: tuple[int, ...],
        bias: bool,
        device: vkml.DeviceLike | None,
        dtype: vkml.dtype | None,
    ) -> None:
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] groups={groups} does not divide in_channels="
                f"{in_channels} and out_channels={out_channels}."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.groups = groups
        self.weight = Parameter(vkml.empty(shape, dtype=dtype, device=device))
        offset = Parameter(vkml.empty((out_channels,), dtype=dtype, device=device))
        self.register_parameter("bias", offset if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform on +-1 / sqrt(inputs of one result)."""
        init.default_affine_(self.weight, self.bias)

    def extra_repr(self) -> str:
        """The constructor's first arguments."""
        return f"{self.in_channels}, {self.out_channels}, kernel={tuple(self.weight.shape[2:])}"


class Conv1d(_Kernel):
    """Cross-correlation over the last axis, with learned kernels.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the result.
        kernel_size: Length of the kernels.
        stride: Steps of the kernel.
        padding: Zeros on each side, `valid` (0) or `same` (keeps the length, for stride 1).
        dilation: Distance between kernel elements.
        groups: Blocks of channels that do not see each other; divides both channel counts.
        bias: Whether there is an offset.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] = 1,
        padding: int | tuple[int] | Literal["valid", "same"] = 0,
        dilation: int | tuple[int] = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        shape = (out_channels, in_channels // max(groups, 1), as_single(kernel_size))
        super().__init__(in_channels, out_channels, groups, shape, bias, device, dtype)
        self.stride = stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, in_channels, length) to (batch, out_channels, ...)."""
        return functional.conv1d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class ConvTranspose1d(_Kernel):
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
        *,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        shape = (in_channels, out_channels // max(groups, 1), as_single(kernel_size))
        super().__init__(in_channels, out_channels, groups, shape, bias, device, dtype)
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, in_channels, length) to (batch, out_channels, ...)."""
        return functional.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_Kernel):
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
        *,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        shape = (in_channels, out_channels // max(groups, 1), *as_pair(kernel_size))
        super().__init__(in_channels, out_channels, groups, shape, bias, device, dtype)
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, in_channels, height, width) to (batch, out_channels, ...)."""
        return functional.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


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
