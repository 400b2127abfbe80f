"""Activations as functions, with PyTorch's names and arguments.

Each is one row of the table of elementwise operators, or a line of them. With `inplace=True` the
input itself takes the result, for every name it has.
"""

from __future__ import annotations

import vkml
from vkml import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of x and 0."""
    return input.relu_() if inplace else input.relu()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The input, cut to [0, 6]."""
    return input.relu6_() if inplace else input.relu6()


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """The input, cut to [min_val, max_val]; the gradient is 0 at both ends.

    Integers stay integers, cut to whole ends.
    """
    if min_val > max_val:
        raise vkml.ArgumentError(
            f"[hardtanh] min_val {min_val} exceeds max_val {max_val}. Exchange them."
        )
    if not input.dtype.is_floating_point:
        # Whole ends leave integers what they are.
        ends = int(min_val), int(max_val)
        return input.clamp_(*ends) if inplace else input.clamp(*ends)
    return input.hardtanh_(min_val, max_val) if inplace else input.hardtanh(min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The input where it exceeds `threshold`, `value` elsewhere."""
    return input.threshold_(threshold, value) if inplace else input.threshold(threshold, value)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(x + 3) / 6, cut to [0, 1]."""
    return input.hardsigmoid_() if inplace else input.hardsigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return input.logsigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """The input times its sigmoid: x * sigmoid(x)."""
    return input.silu_() if inplace else input.silu()


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """X * tanh(log(1 + exp(x))) (Misra, 2019)."""
    return input.mish_() if inplace else input.mish()


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """The input times its hardsigmoid (Howard et al., 2019)."""
    return input.hardswish_() if inplace else input.hardswish()


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """The input times Phi(x), the normal distribution function (Hendrycks and Gimpel, 2016).

    Args:
        input: Any shape.
        approximate: `none`, or `tanh` for the authors' approximation.
    """
    return vkml.gelu(input, approximate=approximate)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The input where positive, `negative_slope * x` elsewhere."""
    return input.leaky_relu_(negative_slope) if inplace else input.leaky_relu(negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The input where positive, `weight * x` elsewhere.

    Args:
        input: Shape (batch, channels, ...).
        weight: Shape (1,), or (channels,).
    """
    return vkml.prelu(input, weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn for each element in training, and the middle otherwise.

    Args:
        input: Any shape.
        lower: The least slope.
        upper: The greatest slope.
        training: Whether slopes are drawn, uniformly.
        inplace: Whether the input takes the result.
    """
    if lower > upper:
        raise vkml.ArgumentError(f"[rrelu] lower {lower} exceeds upper {upper}. Exchange them.")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    draws = vkml.rand(*input.shape, dtype=input.dtype, device=input.device)
    slopes = draws * (upper - lower) + lower
    return input.leaky_relu_(slopes) if inplace else input.leaky_relu(slopes)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return input.elu_(alpha) if inplace else input.elu(alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where positive, `alpha * (exp(x / alpha) - 1)` elsewhere (Barron, 2017)."""
    if alpha == 0:
        raise vkml.ArgumentError("[celu] alpha is 0. Pass another number, 1 for elu.")
    return input.celu_(alpha) if inplace else input.celu(alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled ELU that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""
    return input.selu_() if inplace else input.selu()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x > threshold."""
    return input.softplus(beta, threshold)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where |x| <= lambd, x elsewhere."""
    return input.hardshrink(lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The input moved toward 0 by `lambd`, 0 where |x| <= lambd."""
    if lambd < 0:
        raise vkml.ArgumentError(f"[softshrink] lambd {lambd} is negative. Pass 0 or more.")
    return input.softshrink(lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """X - tanh(x)."""
    return input.tanhshrink()


def softsign(input: Tensor) -> Tensor:
    """X / (1 + |x|)."""
    return input.softsign()


def _halves(input: Tensor, dim: int, name: str) -> tuple[Tensor, Tensor]:
    extent = input.shape[dim]
    if extent % 2:
        raise vkml.ShapeError(
            f"[{name}] axis {dim} of shape {tuple(input.shape)} has no halves. Pass an even extent."
        )
    half = extent // 2
    return input.narrow(dim, 0, half), input.narrow(dim, half, half)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al., 2016)."""
    values, gates = _halves(input, dim, "glu")
    return values * gates.sigmoid()


def reglu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the ReLU of the second (Shazeer, 2020)."""
    values, gates = _halves(input, dim, "reglu")
    return values * gates.relu()


def geglu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the GELU of the second (Shazeer, 2020)."""
    values, gates = _halves(input, dim, "geglu")
    return values * gates.gelu()


def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the SiLU of the second (Shazeer, 2020)."""
    values, gates = _halves(input, dim, "swiglu")
    return values * gates.silu()


def softmin(input: Tensor, dim: int, *, dtype: vkml.dtype | None = None) -> Tensor:
    """The softmax of -x along `dim`."""
    return softmax(-input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: vkml.dtype | None = None) -> Tensor:
    """exp(x) divided by its sum along `dim`; `dtype` converts the input first."""
    return vkml.softmax(input if dtype is None else input.to(dtype), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: vkml.dtype | None = None) -> Tensor:
    """The logarithm of `softmax`, without overflow."""
    return vkml.log_softmax(input if dtype is None else input.to(dtype), dim)
