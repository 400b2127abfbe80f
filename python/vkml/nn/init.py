"""Filling tensors with initial values, by PyTorch's names and distributions.

Each function assigns to the tensor it is given, under `no_grad`, and returns it. Draws come from
the device's counter-based stream: `vkml.manual_seed` makes them repeatable, on every device alike;
or from the `generator`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import vkml
from vkml import Tensor, no_grad
from vkml.argument_errors import check_arguments as _check_arguments

if TYPE_CHECKING:
    from vkml import Generator


def _assign(tensor: Tensor, value: Tensor) -> Tensor:
    with no_grad():
        tensor.assign_(value.to(tensor.dtype))
    return tensor


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with draws from the uniform distribution on [a, b)."""
    draw = vkml.rand(tensor.shape, generator=generator, device=tensor.device)
    return _assign(tensor, draw * (b - a) + a)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with draws from the normal distribution."""
    draw = vkml.randn(tensor.shape, generator=generator, device=tensor.device)
    return _assign(tensor, draw * std + mean)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    return _assign(tensor, vkml.full(tensor.shape, val, dtype=tensor.dtype, device=tensor.device))


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with ones on the diagonal and zeros elsewhere."""
    if tensor.ndim != 2:
        raise vkml.ShapeError(f"[eye_] needs a matrix, got shape {tuple(tensor.shape)}.")
    rows = vkml.arange(tensor.shape[0], device=tensor.device).reshape(-1, 1)
    columns = vkml.arange(tensor.shape[1], device=tensor.device).reshape(1, -1)
    return _assign(tensor, (rows == columns).to(tensor.dtype))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity asks for a larger deviation before it.

    Args:
        nonlinearity: `linear`, `sigmoid`, `tanh`, `relu`, `leaky_relu`, `selu`, or the name of a
            convolution.
        param: The negative slope of `leaky_relu` (0.01 if None).
    """
    gains = {
        "linear": 1.0,
        "conv1d": 1.0,
        "conv2d": 1.0,
        "conv3d": 1.0,
        "conv_transpose1d": 1.0,
        "conv_transpose2d": 1.0,
        "conv_transpose3d": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "selu": 3.0 / 4,
    }
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in gains:
        raise vkml.ArgumentError(
            f"[calculate_gain] unknown nonlinearity {nonlinearity!r}. "
            f"Known: leaky_relu, {', '.join(gains)}."
        )
    return gains[nonlinearity]


def _fans(tensor: Tensor, operator: str) -> tuple[int, int]:
    """Inputs and outputs of one unit, for weights of shape (out, in, kernel...)."""
    if tensor.ndim < 2:
        raise vkml.ShapeError(
            f"[{operator}] needs at least 2 axes to tell inputs from outputs, "
            f"got shape {tuple(tensor.shape)}."
        )
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive_field, tensor.shape[0] * receptive_field


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, operator: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise vkml.ArgumentError(f"[{operator}] mode is {mode!r}. Pass 'fan_in' or 'fan_out'.")
    fan = _fans(tensor, operator)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform, with the deviation of Glorot and Bengio (2010): gain * sqrt(2 / (in + out))."""
    std = gain * math.sqrt(2.0 / sum(_fans(tensor, "xavier_uniform_")))
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal, with the deviation of Glorot and Bengio (2010): gain * sqrt(2 / (in + out))."""
    std = gain * math.sqrt(2.0 / sum(_fans(tensor, "xavier_normal_")))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform, with the deviation of He et al. (2015): gain / sqrt(fan).

    Args:
        tensor: What is filled: weights of shape (out, in, kernel...).
        a: The negative slope of a leaky ReLU that follows.
        mode: `fan_in` keeps the variance in the forward pass, `fan_out` in the backward pass.
        nonlinearity: What follows: `relu` or `leaky_relu`.
        generator: What draws; vkML's own stream if None.
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal, with the deviation of He et al. (2015); arguments as `kaiming_uniform_`."""
    deviation = _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_")
    return normal_(tensor, 0.0, deviation, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with draws from the normal distribution, conditioned on [a, b]."""
    draw = vkml.truncated_normal(
        tensor.shape, mean, std, a, b, generator=generator, device=tensor.device
    )
    return _assign(tensor, draw)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A random (semi-)orthogonal matrix times `gain` (Saxe et al., 2014).

    Trailing axes are flattened into columns. The matrix is drawn and factored on the CPU.
    """
    if tensor.ndim < 2:
        raise vkml.ShapeError(
            f"[orthogonal_] needs at least 2 axes, got shape {tuple(tensor.shape)}."
        )
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    with no_grad():
        shape = (max(rows, columns), min(rows, columns))
        draw = vkml.randn(shape, generator=generator, device=vkml.cpu)
        q, r = vkml.linalg.qr(draw)
        # The signs of R's diagonal make Q uniform over orthogonal matrices (Mezzadri, 2007).
        q = q * r.diagonal().sign()
        q = q.transpose(0, 1) if rows < columns else q
        return _assign(tensor, (q * gain).reshape(tensor.shape).contiguous().to(tensor.device))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal draws in a matrix, with the same share of zeros in each column (Martens, 2010).

    Args:
        tensor: The matrix.
        sparsity: The share of zeros in a column, rounded up to whole elements.
        std: The deviation of the others.
        generator: What draws; vkML's own stream if None.
    """
    if tensor.ndim != 2:
        raise vkml.ShapeError(f"[sparse_] needs a matrix, got shape {tuple(tensor.shape)}.")
    zeros = math.ceil(sparsity * tensor.shape[0])
    order = vkml.rand(tensor.shape, generator=generator, device=tensor.device)
    rank = order.argsort(0).argsort(0)
    draw = vkml.randn(tensor.shape, generator=generator, device=tensor.device) * std
    return _assign(tensor, vkml.where(rank < zeros, 0.0, draw))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that passes as many channels on as it can, in each group.

    Args:
        tensor: Weights of shape (out, in / groups, kernel...).
        groups: How many groups the channels are in.
    """
    if tensor.ndim not in (3, 4) or tensor.shape[0] % groups != 0:
        raise vkml.ShapeError(
            f"[dirac_] got shape {tuple(tensor.shape)} and {groups} groups. Pass weights of a "
            "convolution whose output channels the groups divide."
        )
    shape, device = tensor.shape, tensor.device

    def index(axis: int) -> Tensor:
        extents = [-1 if each == axis else 1 for each in range(len(shape))]
        return vkml.arange(shape[axis], device=device).reshape(extents)

    is_one = (index(0) % (shape[0] // groups)) == index(1)
    for axis in range(2, len(shape)):
        is_one = is_one & (index(axis) == shape[axis] // 2)
    return _assign(tensor, is_one.to(tensor.dtype))


def default_affine_(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's default for Linear and Conv layers: both uniform on +-1 / sqrt(fan_in)."""
    kaiming_uniform_(weight, a=math.sqrt(5.0))
    if bias is not None:
        fan_in, _ = _fans(weight, "default_affine_")
        bound = 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        uniform_(bias, -bound, bound)


_check_arguments(globals())
