"""Activations as modules. With `inplace=True` the input takes the result, for every name it has."""

from __future__ import annotations

from collections.abc import Callable

import vkml
from vkml import DeviceLike, Tensor
from vkml.nn import functional
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter


class _Pointwise(Module):
    """An activation without settings."""

    _function: Callable[[Tensor], Tensor]

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return type(self)._function(input)


class _InPlace(Module):
    """An activation without settings that can write to its input."""

    _function: Callable[[Tensor, bool], Tensor]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return type(self)._function(input, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's argument, unless it is the default."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """The larger of x and 0."""

    _function = staticmethod(functional.relu)


class ReLU6(_InPlace):
    """The input, cut to [0, 6]."""

    _function = staticmethod(functional.relu6)


class Sigmoid(_Pointwise):
    """1 / (1 + exp(-x))."""

    _function = staticmethod(functional.sigmoid)


class Tanh(_Pointwise):
    """The hyperbolic tangent."""

    _function = staticmethod(functional.tanh)


class SiLU(_InPlace):
    """The input times its sigmoid: x * sigmoid(x)."""

    _function = staticmethod(functional.silu)


class LogSigmoid(_Pointwise):
    """log(sigmoid(x)), without overflow."""

    _function = staticmethod(functional.logsigmoid)


class Mish(_InPlace):
    """x * tanh(log(1 + exp(x)))."""

    _function = staticmethod(functional.mish)


class SELU(_InPlace):
    """A scaled ELU that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""

    _function = staticmethod(functional.selu)


class Hardsigmoid(_InPlace):
    """(x + 3) / 6, cut to [0, 1]."""

    _function = staticmethod(functional.hardsigmoid)


class Hardswish(_InPlace):
    """The input times its hardsigmoid."""

    _function = staticmethod(functional.hardswish)


class Softsign(_Pointwise):
    """x / (1 + |x|)."""

    _function = staticmethod(functional.softsign)


class Tanhshrink(_Pointwise):
    """x - tanh(x)."""

    _function = staticmethod(functional.tanhshrink)


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
        self.inplace = inplace
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """The input where positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


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


class Softmax2d(Module):
    """Softmax over the channels of (batch, channels, height, width), or no batch."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalises along the channels."""
        return functional.softmax(input, -3)


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


class Hardtanh(Module):
    """The input, cut to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + (
            ", inplace=True" if self.inplace else ""
        )


class Threshold(Module):
    """The input where it exceeds `threshold`, `value` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"threshold={self.threshold}, value={self.value}" + (
            ", inplace=True" if self.inplace else ""
        )


class CELU(Module):
    """The input where positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Hardshrink(Module):
    """0 where |x| <= lambd, x elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"lambd={self.lambd}"


class Softshrink(Module):
    """The input moved toward 0 by `lambd`, 0 where |x| <= lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"lambd={self.lambd}"


class RReLU(Module):
    """Leaky ReLU whose slope is drawn for each element in training, the middle otherwise."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.inplace = inplace
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to each element."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"lower={self.lower}, upper={self.upper}" + (
            ", inplace=True" if self.inplace else ""
        )


class PReLU(Module):
    """The input where positive, `weight * x` elsewhere, with learnt weights (He et al., 2015).

    Attributes:
        weight: Shape (num_parameters,): one for all channels, or one for each.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(
            vkml.full((num_parameters,), init, dtype=dtype or vkml.float32, device=device)
        )

    def forward(self, input: Tensor) -> Tensor:
        """Takes shape (batch, channels, ...)."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of weights."""
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """The first half along `dim` times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Halves the extent of `dim`."""
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"dim={self.dim}"


class Softmin(Module):
    """The softmax of -x along `dim`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Normalises along `dim`."""
        return functional.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """The constructor's argument."""
        return f"dim={self.dim}"
