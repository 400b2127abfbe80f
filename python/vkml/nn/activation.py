"""Activations as modules. `inplace` is accepted and changes nothing: values are immutable."""

from __future__ import annotations

from collections.abc import Callable

from vkml import Tensor
from vkml.nn import functional
from vkml.nn.module import Module


class _Pointwise(Module):
    """An activation without settings."""

    _function: Callable[[Tensor], Tensor]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return type(self)._function(input)


class ReLU(_Pointwise):
    """The larger of x and 0."""

    _function = staticmethod(functional.relu)


class ReLU6(_Pointwise):
    """The input, cut to [0, 6]."""

    _function = staticmethod(functional.relu6)


class Sigmoid(_Pointwise):
    """1 / (1 + exp(-x))."""

    _function = staticmethod(functional.sigmoid)


class Tanh(_Pointwise):
    """The hyperbolic tangent."""

    _function = staticmethod(functional.tanh)


class SiLU(_Pointwise):
    """The input times its sigmoid: x * sigmoid(x)."""

    _function = staticmethod(functional.silu)


class LogSigmoid(_Pointwise):
    """log(sigmoid(x)), without overflow."""

    _function = staticmethod(functional.logsigmoid)


class GELU(Module):
    """The input times the normal distribution function, as `functional.gelu`."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """The input where positive, `negative_slope * x` elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """The input where positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.elu(input, self.alpha)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"alpha={self.alpha}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) divided by its sum along `dim`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Normalises along `dim`."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax along `dim`, without overflow."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Normalises along `dim`."""
        return functional.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"dim={self.dim}"
