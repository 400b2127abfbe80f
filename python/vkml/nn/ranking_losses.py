"""Losses that compare distances, signs and distributions, as functions.

All reduce by `reduction`: `mean`, `sum` or `none`. Names and arguments are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import vkml
from vkml import Tensor
from vkml._vkml import _gather_as
from vkml.mixed_precision import in_float32, through_float32
from vkml.nn.loss_functions import check_reduction, check_same_shape, reduce_loss


@through_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms are at least `eps`.

    Args:
        x1: Vectors.
        x2: Vectors; both broadcast to one shape.
        dim: Their axis in that shape.
        eps: The least norm.
    """
    x1, x2 = vkml.broadcast_tensors(x1, x2)
    if x1.shape[dim] == 0:
        return (x1 * x2).sum(dim)
    unit1, norm1 = _scaled(x1, dim, eps)
    unit2, norm2 = _scaled(x2, dim, eps)
    return (unit1 * unit2).sum(dim) / (norm1 * norm2)


# Squares of larger numbers, and their sums, come near the end of float32.
_LARGE = 2.0**48


def _scaled(x: Tensor, dim: int, eps: float) -> tuple[Tensor, Tensor]:
    """Vectors, large ones divided by their largest element, and their norms of at least `eps`."""
    largest = x.detach().abs().amax(dim, keepdim=True)
    is_large = (largest > _LARGE) & largest.isfinite()
    scale = vkml.where(is_large, largest, 1.0)
    unit = x / scale
    return unit, vkml.maximum(vkml.norm(unit, 2, dim), eps / scale.squeeze(dim))


@in_float32
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis."""
    return vkml.norm(x1 - x2 + eps, p, -1, keepdim)


@in_float32
def kl_div(
    input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """The divergence of a distribution from log probabilities: target * (log(target) - input).

    Args:
        input: Log probabilities.
        target: Probabilities, or with `log_target` their logarithms, in the shape of `input`.
        reduction: `batchmean` (the sum divided by the first extent), `mean`, `sum` or `none`.
        log_target: Whether the target is given by its logarithm.
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        positive = target > 0
        # x log(x) is 0 at 0, where the logarithm's gradient is not.
        logarithm = vkml.where(positive, vkml.where(positive, target, 1.0).log(), 0.0)
        loss = target * (logarithm - input)
    if reduction == "batchmean":
        batch = int(input.shape[0])
        return reduce_loss(loss, "sum", "kl_div") / batch
    return reduce_loss(loss, reduction, "kl_div")


@in_float32
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    """A distance where the target is 1, max(0, margin - distance) where it is -1."""
    check_same_shape(input, target, "hinge_embedding_loss")
    loss = vkml.where(target == 1, input, (margin - input).relu())
    return reduce_loss(loss, reduction, "hinge_embedding_loss")


@in_float32
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    Args:
        input1: Vectors, shape (batch, width) or (width,).
        input2: Vectors to compare with.
        target: 1 or -1 for each pair.
        margin: Cosine up to which pairs that differ cost nothing.
        reduction: `mean`, `sum` or `none`.
    """
    cosine = cosine_similarity(input1, input2, -1, 1e-12)
    loss = vkml.where(target == 1, 1 - cosine, (cosine - margin).relu())
    return reduce_loss(loss, reduction, "cosine_embedding_loss")


@in_float32
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): a target of 1 ranks the first higher."""
    loss = (margin - target * (input1 - input2)).relu()
    return reduce_loss(loss, reduction, "margin_ranking_loss")


@in_float32
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), for targets of 1 and -1."""
    check_same_shape(input, target, "soft_margin_loss")
    return reduce_loss(vkml.softplus(-target * input), reduction, "soft_margin_loss")


@in_float32
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to the positive - distance to the negative + margin) (Balntas et al., 2016).

    Args:
        anchor: Vectors, shape (batch, width) or (width,).
        positive: Vectors that should be near.
        negative: Vectors that should be far.
        margin: How much farther.
        p: The norm of distances.
        eps: Added to differences.
        swap: Whether the positive counts as an anchor too, if it is nearer to the negative.
        reduction: `mean`, `sum` or `none`.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


@in_float32
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance; `pairwise_distance` if None."""
    distance = pairwise_distance if distance_function is None else distance_function
    far = distance(anchor, negative)
    if swap:
        far = vkml.minimum(far, distance(positive, negative))
    loss = (distance(anchor, positive) - far + margin).relu()
    return reduce_loss(loss, reduction, "triplet_margin_loss")


@in_float32
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """The mean over other classes of max(0, margin - score of the target + score)^p.

    Args:
        input: Scores, shape (batch, classes) or (classes,).
        target: Class numbers, shape (batch,) or ().
        p: The exponent, 1 or 2.
        margin: By how much the target should win.
        weight: A factor for each class.
        reduction: `mean`, `sum` or `none`.
    """
    classes = input.shape[-1]
    index = target.unsqueeze(-1)
    own = _gather_as("multi_margin_loss", input, input.ndim - 1, index)
    loss = (margin - own + input).relu() ** p
    if weight is not None:
        of_target = _gather_as("multi_margin_loss", weight, 0, index.flatten())
        loss = loss * of_target.reshape(*index.shape)
    others = vkml.arange(classes, device=input.device) != index
    loss = vkml.where(others, loss, 0.0).sum(-1) / classes
    return reduce_loss(loss, reduction, "multi_margin_loss")


@in_float32
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean over classes of max(0, 1 - score of a target + score), for every target.

    Args:
        input: Scores, shape (batch, classes) or (classes,).
        target: Class numbers in the shape of `input`, up to the first -1.
        reduction: `mean`, `sum` or `none`.
    """
    check_same_shape(input, target, "multilabel_margin_loss")
    classes = input.shape[-1]
    counts = (target >= 0).to(vkml.int32).cumprod(-1) > 0
    index = vkml.where(counts, target, 0)
    number = vkml.arange(classes, device=input.device)
    is_own = ((index.unsqueeze(-1) == number) & counts.unsqueeze(-1)).any(-2, keepdim=True)
    own = _gather_as("multilabel_margin_loss", input, input.ndim - 1, index).unsqueeze(-1)
    loss = (1 - own + input.unsqueeze(-2)).relu()
    loss = vkml.where(counts.unsqueeze(-1) & ~is_own, loss, 0.0).sum((-2, -1)) / classes
    return reduce_loss(loss, reduction, "multilabel_margin_loss")


@in_float32
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of each class's binary cross entropy, from logits (batch, classes)."""
    check_same_shape(input, target, "multilabel_soft_margin_loss")
    loss = vkml.softplus(-input) + (1 - target) * input
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss.mean(-1), reduction, "multilabel_soft_margin_loss")


@in_float32
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts under Poisson distributions, up to a constant.

    Args:
        input: Logarithms of rates, or rates without `log_input`.
        target: Counts.
        log_input: Whether the input is a logarithm.
        full: Whether Stirling's approximation of log(target!) is added, for targets above 1.
        eps: Added to a rate before its logarithm.
        reduction: `mean`, `sum` or `none`.
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        above = target > 1
        count = vkml.where(above, target, 2.0)
        stirling = count * count.log() - count + 0.5 * (2 * math.pi * count).log()
        loss = loss + vkml.where(above, stirling, 0.0)
    return reduce_loss(loss, reduction, "poisson_nll_loss")


@in_float32
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of targets under normal distributions.

    Args:
        input: Means.
        target: What was observed.
        var: Variances, broadcast over trailing axes; at least `eps`, which takes no gradient.
        full: Whether the constant log(2 pi) / 2 is added.
        eps: The smallest variance.
        reduction: `mean`, `sum` or `none`.
    """
    if isinstance(var, Tensor) and var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    if isinstance(var, Tensor):
        variance = var + (var.clamp(min=eps) - var).detach()
    else:
        variance = vkml.full((), max(var, eps), dtype=input.dtype, device=input.device)
    difference = input - target
    loss = 0.5 * (variance.log() + difference * difference / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction, "gaussian_nll_loss")


# Stands for log(0): finite, so that its gradient is 0 rather than NaN.
_NEVER = -1e30


@in_float32
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | list[int] | tuple[int, ...],
    target_lengths: Tensor | list[int] | tuple[int, ...],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., ICML 2006), by the forward recursion.

    Args:
        log_probs: Log probabilities, shape (time, batch, classes) or (time, classes).
        targets: Class numbers without blanks, shape (batch, longest), or all one after the other.
        input_lengths: Times of each example.
        target_lengths: Labels of each example.
        blank: The class number of the blank.
        reduction: `mean` (each loss divided by its number of labels), `sum` or `none`.
        zero_infinity: Whether examples that no alignment fits cost nothing, rather than infinity.
    """
    check_reduction(reduction, "ctc_loss")
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    times, batch, classes = log_probs.shape
    device = log_probs.device
    lengths = _integers(target_lengths)
    spans = _integers(input_lengths)
    rows = _target_rows(targets, lengths)
    if any(not 0 <= label < classes for row in rows for label in row):
        raise vkml.IndexError(f"[ctc_loss] a target is outside {classes} classes.")
    if max(spans, default=0) > times:
        raise vkml.ArgumentError(f"[ctc_loss] input lengths {spans} exceed {times} times.")
    longest = max(lengths, default=0)
    # Labels with a blank before, between and behind them; a label may skip the blank before it
    # unless it repeats the label before that.
    states = [
        [blank]
        + [state for label in row for state in (label, blank)]
        + [blank] * (2 * (longest - len(row)))
        for row in rows
    ]
    skips = [
        [i >= 2 and row[i] != blank and row[i] != row[i - 2] for i in range(len(row))]
        for row in states
    ]
    width = 2 * longest + 1
    state_index = vkml.tensor(states, dtype=vkml.int64, device=device).reshape(1, batch, width)
    may_skip = vkml.tensor(skips, device=device).reshape(batch, width)
    emitted = vkml.gather(log_probs, 2, state_index.broadcast_to((times, batch, width)))
    emitted = emitted.clamp(min=_NEVER)
    starts = vkml.arange(width, device=device) < 2
    alpha = vkml.where(starts, emitted[0], _NEVER)
    span = vkml.tensor(spans, dtype=vkml.int32, device=device).reshape(batch, 1)
    for time in range(1, times):
        one = vkml.pad(alpha, (1, 0), value=_NEVER)[:, :width]
        two = vkml.pad(alpha, (2, 0), value=_NEVER)[:, :width]
        two = vkml.where(may_skip, two, _NEVER)
        sums = vkml.logsumexp(vkml.stack([alpha, one, two], 0), 0)
        alpha = vkml.where(time < span, (sums + emitted[time]).clamp(min=_NEVER), alpha)
    last = vkml.tensor([[2 * n] for n in lengths], dtype=vkml.int64, device=device)
    ends = [vkml.gather(alpha, 1, last)]
    before = vkml.gather(alpha, 1, (last - 1).clamp(min=0))
    ends.append(vkml.where(last > 0, before, _NEVER))
    likelihood = vkml.logsumexp(vkml.cat(ends, 1), 1)
    impossible = likelihood < 0.5 * _NEVER
    loss = vkml.where(impossible, 0.0 if zero_infinity else math.inf, -likelihood)
    if reduction == "none":
        return loss.squeeze(0) if single else loss
    if reduction == "sum":
        return loss.sum()
    divisors = [float(max(length, 1)) for length in lengths]
    return (loss / vkml.tensor(divisors, dtype=loss.dtype, device=device)).mean()


def _integers(values: Tensor | list[int] | tuple[int, ...]) -> list[int]:
    numbers = values.reshape(-1).tolist() if isinstance(values, Tensor) else list(values)
    return [int(number) for number in numbers]


def _target_rows(targets: Tensor, lengths: list[int]) -> list[list[int]]:
    """The labels of each example."""
    if targets.ndim == 2:
        return [row[:n] for row, n in zip(targets.tolist(), lengths, strict=True)]
    flat = targets.tolist()
    rows, start = [], 0
    for length in lengths:
        rows.append(flat[start : start + length])
        start += length
    return rows
