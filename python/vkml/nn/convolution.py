"""Convolutions over one axis and two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.pairs import IntOrPair, as_pair, as_single
from vkml.nn.parameter import Parameter

_DEFAULTS = (("padding", 0), ("dilation", 1), ("output_padding", 0))
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _on_axes(value: Any, axes: int) -> Any:
    """A setting of every axis, as printed: `valid` and `same` stay."""
    return value if isinstance(value, (tuple, str)) else (value,) * axes


class Convolution(Module):
    """What convolutions share: a learned kernel and an offset.

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
        padding_mode: str,
        device: vkml.DeviceLike | None,
        dtype: vkml.dtype | None,
    ) -> None:
        super().__init__()
        if padding_mode not in _PADDING_MODES:
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] padding_mode is {padding_mode!r}. Pass 'zeros', "
                f"'reflect', 'replicate' or 'circular'."
            )
        self.padding_mode = padding_mode
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

    def _padded(
        self,
        input: Tensor,
        padding: Sequence[int] | Literal["valid", "same"],
        dilation: Sequence[int],
    ) -> Tensor:
        """The input with elements of its own on each side."""
        sides: list[int] = []
        # The last axis comes first.
        for axis in reversed(range(len(dilation))):
            if isinstance(padding, str):
                total = dilation[axis] * (self.weight.shape[2 + axis] - 1)
                total = total if padding == "same" else 0
                sides += [total // 2, total - total // 2]
            else:
                sides += [padding[axis]] * 2
        return functional.pad(input, sides, self.padding_mode)

    def extra_repr(self) -> str:
        """The constructor's arguments: all that must be given, and others that were."""
        kernel = tuple(self.weight.shape[2:])
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={kernel}"
        for name, default in (("stride", None), *_DEFAULTS):
            value = _on_axes(getattr(self, name, default), len(kernel))
            if value != _on_axes(default, len(kernel)):
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class Conv1d(Convolution):
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
        padding_mode: What `padding` adds: `zeros`, or elements of the input by `reflect`,
            `replicate` or `circular`, as in `functional.pad`.
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
        padding_mode: str = "zeros",
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        shape = (out_channels, in_channels // max(groups, 1), as_single(kernel_size))
        super().__init__(
            in_channels, out_channels, groups, shape, bias, padding_mode, device, dtype
        )
        self.stride = stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, in_channels, length) to (batch, out_channels, ...)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            sides = padding if isinstance(padding, str) else (as_single(padding),)
            input, padding = self._padded(input, sides, (as_single(self.dilation),)), 0
        return functional.conv1d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv2d(Convolution):
    """Cross-correlation over the last two axes, with learned kernels.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the result.
        kernel_size: Extents of the kernels, for both axes or for each.
        stride: Steps of the kernel.
        padding: Zeros on each side, `valid` (0) or `same` (keeps the extents, for stride 1).
        dilation: Distance between kernel elements.
        groups: Blocks of channels that do not see each other; divides both channel counts.
        bias: Whether there is an offset.
        padding_mode: What `padding` adds: `zeros`, or elements of the input by `reflect`,
            `replicate` or `circular`, as in `functional.pad`.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight: Shape (out_channels, in_channels / groups, kernel height, kernel width).
        bias: Shape (out_channels,), or None.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair | Literal["valid", "same"] = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        size = as_pair(kernel_size)
        shape = (out_channels, in_channels // max(groups, 1), *size)
        super().__init__(
            in_channels, out_channels, groups, shape, bias, padding_mode, device, dtype
        )
        self.kernel_size = size
        self.stride = as_pair(stride)
        self.padding = padding if isinstance(padding, str) else as_pair(padding)
        self.dilation = as_pair(dilation)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, in_channels, height, width) to (batch, out_channels, ...)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = self._padded(input, padding, self.dilation), (0, 0)
        return functional.conv2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
        )
