"""Losses as functions: what `vkml.nn.functional` and the loss modules call.

All reduce by `reduction`: `mean`, `sum` or `none`. Names and arguments are PyTorch's.
"""

from __future__ import annotations

import warnings

import vkml
from vkml import Tensor
from vkml._vkml import _checked_probability, _gather_as
from vkml.mixed_precision import in_float32


def check_reduction(reduction: str, operator: str) -> None:
    """Raises unless the reduction is one of `mean`, `sum` and `none`."""
    if reduction not in ("mean", "sum", "none"):
        raise vkml.ArgumentError(
            f"[{operator}] reduction is {reduction!r}. Pass 'mean', 'sum' or 'none'."
        )


def reduce_loss(loss: Tensor, reduction: str, operator: str) -> Tensor:
    """The mean or the sum of a loss, or the loss itself."""
    check_reduction(reduction, operator)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def check_same_shape(input: Tensor, target: Tensor, operator: str) -> None:
    """Raises unless both have one shape."""
    # Broadcasting here would silently average over pairs that were never meant.
    if input.shape != target.shape:
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(input.shape)} and target "
            f"{tuple(target.shape)}. Reshape one of them to the other's shape."
        )


def warn_of_broadcast(input: Tensor, target: Tensor, operator: str) -> None:
    """Warns, as PyTorch does, of shapes that differ: a loss over pairs that were never meant."""
    if input.shape != target.shape:
        warnings.warn(
            f"[{operator}] input has shape {tuple(input.shape)} and target {tuple(target.shape)}, "
            f"which broadcast. Reshape one of them to the other's shape if that is not meant.",
            stacklevel=4,
        )


def reduce_weighted(loss: Tensor, weight: Tensor | None, reduction: str, operator: str) -> Tensor:
    """`reduce_loss` of a loss with a factor for each element; the mean is over factors too."""
    if weight is None:
        return reduce_loss(loss, reduction, operator)
    check_same_shape(loss, weight, operator)
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return reduce_loss(weighted, reduction, operator)


@in_float32
def mse_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """The squared difference.

    Args:
        input: Any shape.
        target: That shape; other shapes broadcast, with a warning.
        reduction: `mean`, `sum` or `none`.
        weight: A factor for each element, by whose sum the mean divides.
    """
    warn_of_broadcast(input, target, "mse_loss")
    difference = input - target
    return reduce_weighted(difference * difference, weight, reduction, "mse_loss")


@in_float32
def l1_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """The absolute difference; arguments as `mse_loss`."""
    warn_of_broadcast(input, target, "l1_loss")
    return reduce_weighted((input - target).abs(), weight, reduction, "l1_loss")


@in_float32
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared difference up to `delta`, linear with slope `delta` beyond.

    Arguments as `mse_loss`, but the mean divides by the number of elements; `delta` is positive.
    """
    if not delta > 0:
        raise vkml.ArgumentError(f"[huber_loss] delta is {delta}. Pass a positive number.")
    warn_of_broadcast(input, target, "huber_loss")
    difference = input - target
    # d^2 / 2 within, where the limit is d itself: smooth at 0, as second derivatives need it.
    limited = difference.clamp(-delta, delta)
    loss = limited * (difference - 0.5 * limited)
    if weight is not None:
        check_same_shape(loss, weight, "huber_loss")
        loss = loss * weight
    return reduce_loss(loss, reduction, "huber_loss")


@in_float32
def smooth_l1_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """The Huber loss with `delta = beta`, divided by `beta`; the absolute difference at 0."""
    if not beta >= 0:
        raise vkml.ArgumentError(f"[smooth_l1_loss] beta is {beta}. Pass 0 or more.")
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, reduction, beta) / beta


def _limited_log(x: Tensor) -> Tensor:
    """log(x), at least -100; the slope is 1 / max(x, 1e-12), as in PyTorch, not 0 at the limit."""
    least = 1e-12
    sloped = vkml.where(x < least, x * (1 / least), x.clamp(min=least).log())
    return sloped + (x.log().clamp(min=-100.0) - sloped).detach()


@in_float32
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities; each logarithm is at least -100.

    Raises:
        ArgumentError: When the loss is observed, if an element of `input` is outside [0, 1] or NaN.
    """
    check_same_shape(input, target, "binary_cross_entropy")
    input = _checked_probability(input)
    log_one = _limited_log(input)
    log_zero = _limited_log(1 - input)
    loss = -(target * log_one + (1 - target) * log_zero)
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss, reduction, "binary_cross_entropy")


@in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of a sigmoid, from its logits, without overflow at any logit.

    Args:
        input: Logits.
        target: Probabilities of class 1, in the shape of `input`.
        weight: Factors on the loss of each element, broadcast.
        reduction: `mean`, `sum` or `none`.
        pos_weight: Factors on the share of class 1, broadcast.
    """
    operator = "binary_cross_entropy_with_logits"
    check_same_shape(input, target, operator)
    # -log(sigmoid(x)) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(-x) + x.
    loss_of_one = vkml.softplus(-input)
    if pos_weight is not None:
        loss_of_one = (1 + (pos_weight - 1) * target) * loss_of_one
    loss = (1 - target) * input + loss_of_one
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss, reduction, operator)


@in_float32
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of a softmax over classes, from its logits.

    Args:
        input: Logits of shape (classes,), (batch, classes) or (batch, classes, positions...).
        target: Class numbers, shaped as `input` without its class axis; or class probabilities,
            shaped as `input`.
        weight: A factor for each class. The mean is weighted with it too.
        ignore_index: The class number of rows that count for nothing.
        reduction: `mean`, `sum` or `none`. The mean over no rows at all (every row ignored) is
            NaN, as 0 / 0.
        label_smoothing: The share of each target that is spread evenly over all classes.

    Raises:
        IndexError: When the result is read, for a class number outside the classes.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise vkml.ArgumentError(
            f"[cross_entropy] label_smoothing is {label_smoothing}. Pass a number in [0, 1]."
        )
    if target.dtype.is_floating_point:
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    _check_classes(input, target, "cross_entropy")
    if weight is None:
        check_reduction(reduction, "cross_entropy")
        return vkml.cross_entropy(input, target, reduction, ignore_index, label_smoothing)
    return _weighted_cross_entropy(
        vkml.log_softmax(input, _class_axis(input)),
        target,
        weight,
        ignore_index,
        reduction,
        label_smoothing,
        "cross_entropy",
    )


@in_float32
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood, from log probabilities; arguments as `cross_entropy`."""
    _check_classes(input, target, "nll_loss")
    if weight is None:
        classes = input.shape[_class_axis(input)]
        weight = vkml.ones((classes,), dtype=input.dtype, device=input.device)
    return _weighted_cross_entropy(input, target, weight, ignore_index, reduction, 0.0, "nll_loss")


def _class_axis(input: Tensor) -> int:
    return 1 if input.ndim > 1 else 0


def _check_classes(input: Tensor, target: Tensor, operator: str) -> None:
    axis = _class_axis(input)
    expected = tuple(input.shape[:axis]) + tuple(input.shape[axis + 1 :])
    if tuple(target.shape) != expected:
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(input.shape)}, so class numbers have shape "
            f"{expected}, but target has {tuple(target.shape)}."
        )


def _along_classes(weight: Tensor, input: Tensor) -> Tensor:
    """A factor for each class, shaped to broadcast over `input`."""
    axis = _class_axis(input)
    return weight.reshape(*(-1 if i == axis else 1 for i in range(input.ndim)))


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    check_same_shape(input, target, "cross_entropy")
    axis = _class_axis(input)
    if label_smoothing > 0.0:
        target = target * (1.0 - label_smoothing) + label_smoothing / input.shape[axis]
    share = target * vkml.log_softmax(input, axis)
    if weight is not None:
        share = share * _along_classes(weight, input)
    return reduce_loss(-share.sum(axis), reduction, "cross_entropy")


def _weighted_cross_entropy(
    log_probability: Tensor,
    target: Tensor,
    weight: Tensor,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    operator: str,
) -> Tensor:
    axis = _class_axis(log_probability)
    kept = target != ignore_index
    # Ignored rows may hold any number: they look up class 0, and are masked afterwards.
    row_class = vkml.where(kept, target, 0).unsqueeze(axis)
    loss = -_gather_as(operator, log_probability, axis, row_class).squeeze(axis)
    row_weight = _gather_as(operator, weight, 0, row_class.flatten()).reshape(*loss.shape)
    row_weight = vkml.where(kept, row_weight, 0.0)
    loss = vkml.where(kept, loss, 0.0) * row_weight
    if label_smoothing > 0.0:
        spread = -(log_probability * _along_classes(weight, log_probability)).mean(axis)
        even = vkml.where(kept, spread, 0.0)
        loss = (1.0 - label_smoothing) * loss + label_smoothing * even
    if reduction == "mean":
        return loss.sum() / row_weight.sum()
    return reduce_loss(loss, reduction, operator)
