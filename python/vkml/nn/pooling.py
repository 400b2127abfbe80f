"""Pooling layers: windows over the last axis or the last two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkml import Tensor
from vkml.nn import functional
from vkml.nn.module import Module
from vkml.nn.pairs import IntOrPair
from vkml.nn.pooling_functions import OptionalPair

Single = int | tuple[int]


class _Pool(Module):
    """A pooling function with its settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._names = tuple(settings)
        for name, value in settings.items():
            setattr(self, name, value)

    _hidden: tuple[str, ...] = ("return_indices",)
    _axes_shown = 0  # of layers whose numbers PyTorch shows as tuples: how many axes

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def extra_repr(self) -> str:
        """Those of the constructor's arguments that PyTorch shows too."""
        shown = {name: getattr(self, name) for name in self._names if name not in self._hidden}
        if self._axes_shown > 0:
            if shown["stride"] is None:
                shown["stride"] = shown["kernel_size"]
            shown = {
                name: (value,) * self._axes_shown if isinstance(value, int) else tuple(value)
                for name, value in shown.items()
            }
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class MaxPool2d(_Pool):
    """The largest element of each window; arguments as `functional.max_pool2d`."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Maps (batch, channels, height, width) to fewer rows and columns."""
        return functional.max_pool2d(input, **self._settings())


class MaxPool1d(_Pool):
    """The largest element of each window; arguments as `functional.max_pool1d`."""

    def __init__(
        self,
        kernel_size: Single,
        stride: Single | None = None,
        padding: Single = 0,
        dilation: Single = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Maps (batch, channels, length) to fewer elements."""
        return functional.max_pool1d(input, **self._settings())


class AvgPool2d(_Pool):
    """The mean of each window; arguments as `functional.avg_pool2d`."""

    _hidden = ("ceil_mode", "count_include_pad", "divisor_override")

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to fewer rows and columns."""
        return functional.avg_pool2d(input, **self._settings())


class AvgPool1d(_Pool):
    """The mean of each window; arguments as `functional.avg_pool1d`."""

    _hidden = ("ceil_mode", "count_include_pad")
    _axes_shown = 1

    def __init__(
        self,
        kernel_size: Single,
        stride: Single | None = None,
        padding: Single = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, length) to fewer elements."""
        return functional.avg_pool1d(input, **self._settings())


class LPPool2d(_Pool):
    """The p-norm of each window; arguments as `functional.lp_pool2d`."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to fewer rows and columns."""
        return functional.lp_pool2d(input, **self._settings())


class LPPool1d(_Pool):
    """The p-norm of each window; arguments as `functional.lp_pool1d`."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: Single,
        stride: Single | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, length) to fewer elements."""
        return functional.lp_pool1d(input, **self._settings())


class AdaptiveAvgPool2d(_Pool):
    """The mean of windows that divide both axes, as many as `output_size` asks for."""

    def __init__(self, output_size: OptionalPair) -> None:
        super().__init__(output_size=output_size)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, height, width) to (batch, channels, *output_size)."""
        return functional.adaptive_avg_pool2d(input, **self._settings())


class AdaptiveAvgPool1d(_Pool):
    """The mean of windows that divide the axis, as many as `output_size` asks for."""

    def __init__(self, output_size: Single) -> None:
        super().__init__(output_size=output_size)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, length) to (batch, channels, output_size)."""
        return functional.adaptive_avg_pool1d(input, **self._settings())


class AdaptiveMaxPool2d(_Pool):
    """The largest element of windows that divide both axes."""

    def __init__(self, output_size: OptionalPair, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Maps (batch, channels, height, width) to (batch, channels, *output_size)."""
        return functional.adaptive_max_pool2d(input, **self._settings())


class AdaptiveMaxPool1d(_Pool):
    """The largest element of windows that divide the axis."""

    def __init__(self, output_size: Single, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Maps (batch, channels, length) to (batch, channels, output_size)."""
        return functional.adaptive_max_pool1d(input, **self._settings())


class MaxUnpool1d(_Pool):
    """Maxima back at their places; arguments as `functional.max_unpool1d`."""

    _axes_shown = 1

    def __init__(
        self, kernel_size: Single, stride: Single | None = None, padding: Single = 0
    ) -> None:
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Maps maxima (batch, channels, windows) and their positions to (.., length)."""
        return functional.max_unpool1d(input, indices, output_size=output_size, **self._settings())


class MaxUnpool2d(_Pool):
    """Maxima back at their places; arguments as `functional.max_unpool2d`."""

    _axes_shown = 2

    def __init__(
        self, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
    ) -> None:
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Maps maxima (batch, channels, rows, columns) and positions to (.., height, width)."""
        return functional.max_unpool2d(input, indices, output_size=output_size, **self._settings())
