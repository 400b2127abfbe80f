"""Dropout layers, active in training alone."""

from __future__ import annotations

import vkml
from vkml import Tensor
from vkml.nn import functional
from vkml.nn.module import Module


class _Dropout(Module):
    """What the layers share: a probability."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            owner = type(self).__name__
            raise vkml.ArgumentError(f"[{owner}] p is {p}. Pass a probability in [0, 1].")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with probability `p` in training, and scales the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input` itself in evaluation."""
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zeroes whole channels of (batch, channels, length); as `functional.dropout1d`."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input` itself in evaluation."""
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zeroes whole channels of (batch, channels, height, width); as `functional.dropout2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input` itself in evaluation."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance behind SELU; as `functional.alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input` itself in evaluation."""
        return functional.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels; as `functional.feature_alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input` itself in evaluation."""
        return functional.feature_alpha_dropout(input, self.p, self.training, self.inplace)
