"""Pooling layers: windows over the last two axes."""

from __future__ import annotations

from vkml import Tensor
from vkml.nn import functional
from vkml.nn.functional import IntOrPair
from vkml.nn.module import Module


class MaxPool2d(Module):
    """The largest element of each window; arguments as `functional.max_pool2d`."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to fewer rows and columns."""
        return functional.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}"
        )


class AvgPool2d(Module):
    """The mean of each window; arguments as `functional.avg_pool2d`."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        *,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to fewer rows and columns."""
        return functional.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            count_include_pad=self.count_include_pad,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """The mean of equal windows, as many as `output_size` asks for."""

    def __init__(self, output_size: IntOrPair) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to (batch, channels, *output_size)."""
        return functional.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"output_size={self.output_size}"
