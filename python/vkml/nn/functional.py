"""Layers and losses as functions: expressions of operators that the planner fuses.

Nothing here computes by itself. Each function is a few lines of operators, so that a softmax, a
norm or a loss becomes one kernel together with what stands before and behind it. Names and
arguments are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import vkml
from vkml import Tensor
from vkml.nn.activation_functions import (
    celu,
    elu,
    geglu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    reglu,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    swiglu,
    tanh,
    tanhshrink,
    threshold,
)
from vkml.nn.loss_functions import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv2d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "geglu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "reglu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swiglu",
    "tanh",
    "tanhshrink",
    "threshold",
]

IntOrPair = int | tuple[int, int]


def as_pair(value: IntOrPair) -> tuple[int, int]:
    """A setting for both axes: (n, n) from n, and a pair as it is."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


# Linear maps.


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, over the last axis.

    Args:
        input: Shape (..., in).
        weight: Shape (out, in), or (in,).
        bias: Shape (out,), or None.
    """
    result = input @ (weight.transpose(-1, -2) if weight.ndim > 1 else weight)
    return result if bias is None else result + bias


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair | Literal["valid", "same"] = 0,
    dilation: IntOrPair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over the last two axes.

    Args:
        input: Shape (batch, in, height, width).
        weight: Shape (out, in / groups, kernel height, kernel width).
        bias: Shape (out,), or None.
        stride: Steps of the kernel, for both axes or for each.
        padding: Zeros on each side, for both axes or for each; `valid` is 0, and `same` keeps the
            extents (for stride 1).
        dilation: Distance between kernel elements.
        groups: Blocks of channels that do not see each other.
    """
    if padding == "valid":
        padding = 0
    elif padding == "same":
        if as_pair(stride) != (1, 1):
            raise vkml.ArgumentError(
                f"[conv2d] padding='same' needs stride 1, got {stride}. Give padding in numbers."
            )
        spans = [d * (k - 1) for d, k in zip(as_pair(dilation), weight.shape[2:], strict=True)]
        if any(span % 2 for span in spans):
            # An even kernel needs one more zero behind than in front.
            height, width = spans
            sides = (width // 2, width - width // 2, height // 2, height - height // 2)
            input, padding = vkml.pad(input, sides), 0
        else:
            padding = (spans[0] // 2, spans[1] // 2)
    elif isinstance(padding, str):
        raise vkml.ArgumentError(
            f"[conv2d] padding is {padding!r}. Pass 'valid', 'same' or numbers."
        )
    return vkml.conv2d(
        input, weight, bias, as_pair(stride), as_pair(padding), as_pair(dilation), groups
    )


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of a table, looked up by number.

    Args:
        input: Row numbers, any shape.
        weight: The table, shape (rows, width).
        padding_idx: A row that receives no gradient.
    """
    if padding_idx is not None:
        row = padding_idx % weight.shape[0]
        rows = vkml.arange(weight.shape[0], device=weight.device).unsqueeze(1)
        weight = vkml.where(rows == row, weight.detach(), weight)
    return vkml.embedding(input, weight)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class numbers as rows of zeros with a single 1; without `num_classes`, max + 1 of them."""
    if num_classes == -1:
        num_classes = int(tensor.max().item()) + 1
    classes = vkml.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(vkml.int64)


# Regularisation.


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p)."""
    if not 0.0 <= p <= 1.0:
        raise vkml.ArgumentError(f"[dropout] p is {p}. Pass a probability in [0, 1].")
    if not training or p == 0.0:
        return input
    return vkml.dropout(input, p)


# Pooling and padding.


def max_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
) -> Tensor:
    """The largest element of each window; padding never wins.

    Args:
        input: Shape (batch, channels, height, width).
        kernel_size: Window extents, for both axes or for each.
        stride: Steps of the window; `kernel_size` if None.
        padding: Elements added on each side, smaller than every number.
        dilation: Distance between window elements.
    """
    kernel = as_pair(kernel_size)
    return vkml.max_pool2d(
        input,
        kernel,
        kernel if stride is None else as_pair(stride),
        as_pair(padding),
        as_pair(dilation),
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    *,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window.

    Args:
        input: Shape (batch, channels, height, width).
        kernel_size: Window extents, for both axes or for each.
        stride: Steps of the window; `kernel_size` if None.
        padding: Zeros added on each side.
        count_include_pad: Whether padding counts as elements of the mean.
    """
    kernel = as_pair(kernel_size)
    return vkml.avg_pool2d(
        input,
        kernel,
        kernel if stride is None else as_pair(stride),
        as_pair(padding),
        count_include_pad,
    )


def adaptive_avg_pool2d(input: Tensor, output_size: IntOrPair) -> Tensor:
    """The mean of equal windows, as many as `output_size` asks for.

    Args:
        input: Shape (batch, channels, height, width).
        output_size: Extents of the result; each must divide the input's.
    """
    height, width = input.shape[-2:]
    rows, columns = as_pair(output_size)
    if rows < 1 or columns < 1 or height % rows or width % columns:
        raise vkml.ShapeError(
            f"[adaptive_avg_pool2d] {height}x{width} does not divide into {rows}x{columns} equal "
            f"windows. Use avg_pool2d with a kernel and a stride."
        )
    if (rows, columns) == (1, 1):
        return input.mean((-2, -1), keepdim=True)
    return avg_pool2d(input, (height // rows, width // columns))


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Adds elements at both ends of the last axes.

    Args:
        input: Any shape.
        pad: (before, after) for the last axis, then for the one before it, and so on.
        mode: `constant`.
        value: What is added; 0 if None.
    """
    if mode != "constant":
        raise vkml.ArgumentError(f"[pad] mode is {mode!r}. Only 'constant' is available.")
    return vkml.pad(input, tuple(pad), value=0.0 if value is None else value)


# Normalisation.


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Subtracts the mean and divides by the deviation over the last axes (Ba et al., 2016).

    Args:
        input: Shape (..., *normalized_shape).
        normalized_shape: The extents over which each row is normalised.
        weight: Factors of that shape, or None.
        bias: Offsets of that shape, or None.
        eps: Added to the variance.
    """
    shape = tuple(normalized_shape)
    if len(shape) == 0 or tuple(input.shape[-len(shape) :]) != shape:
        raise vkml.ShapeError(
            f"[layer_norm] normalized_shape {shape} is not the end of the input's shape "
            f"{tuple(input.shape)}."
        )
    return vkml.layer_norm(input, shape, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over the batch and positions (Ioffe and Szegedy, 2015).

    Args:
        input: Shape (batch, channels, positions...).
        running_mean: Means of the channels; updated in training, used otherwise.
        running_var: Variances of the channels, likewise. Training updates it with the unbiased
            variance of the batch, though it normalises by the biased one.
        weight: A factor for each channel, or None.
        bias: An offset for each channel, or None.
        training: Whether the statistics of this batch are used.
        momentum: The weight of this batch in the running statistics.
        eps: Added to the variance.
    """
    if input.ndim < 2:
        raise vkml.ShapeError(
            f"[batch_norm] needs a batch axis and a channel axis, got shape {tuple(input.shape)}."
        )
    per_channel = tuple(-1 if axis == 1 else 1 for axis in range(input.ndim))
    if training or running_mean is None or running_var is None:
        axes = tuple(axis for axis in range(input.ndim) if axis != 1)
        if training:
            _update_statistics(input.detach(), axes, running_mean, running_var, momentum)
        result = vkml.normalize(input, axes, eps)
    else:
        deviation = (running_var + eps).sqrt().reshape(*per_channel)
        result = (input - running_mean.reshape(*per_channel)) / deviation
    if weight is not None:
        result = result * weight.reshape(*per_channel)
    return result if bias is None else result + bias.reshape(*per_channel)


def _update_statistics(
    input: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
) -> None:
    if math.prod(input.shape) <= input.shape[1]:
        raise vkml.ShapeError(
            f"[batch_norm] needs more than one value per channel in training, got shape "
            f"{tuple(input.shape)}. Use a larger batch, or module.eval()."
        )
    with vkml.no_grad():
        if running_mean is not None:
            running_mean.assign_(running_mean * (1 - momentum) + input.mean(axes) * momentum)
        if running_var is not None:
            variance = input.var(axes, correction=1)
            running_var.assign_(running_var * (1 - momentum) + variance * momentum)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where that is larger."""
    if p == 2.0:
        norm = (input * input).sum(dim, keepdim=True).sqrt()
    else:
        norm = (input.abs() ** p).sum(dim, keepdim=True) ** (1.0 / p)
    return input / norm.clamp(min=eps)
