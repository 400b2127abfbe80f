"""Losses that compare distances, signs and distributions, as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkml import Tensor
from vkml.nn import functional
from vkml.nn.module import Module


class _Settings(Module):
    """A loss function with its settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._names = tuple(settings)
        for name, value in settings.items():
            setattr(self, name, value)

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}


class KLDivLoss(_Settings):
    """The divergence of a distribution from log probabilities; as `functional.kl_div`."""

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares log probabilities with probabilities."""
        return functional.kl_div(input, target, **self._settings())


class HingeEmbeddingLoss(_Settings):
    """Distances of pairs that belong together or not; as `functional.hinge_embedding_loss`."""

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares distances with targets of 1 and -1."""
        return functional.hinge_embedding_loss(input, target, **self._settings())


class CosineEmbeddingLoss(_Settings):
    """Cosines of pairs that belong together or not; as `functional.cosine_embedding_loss`."""

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compares pairs of vectors (batch, width) with targets of 1 and -1."""
        return functional.cosine_embedding_loss(input1, input2, target, **self._settings())


class MarginRankingLoss(_Settings):
    """Pairs of scores in the wrong order; as `functional.margin_ranking_loss`."""

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compares pairs of scores with targets of 1 and -1."""
        return functional.margin_ranking_loss(input1, input2, target, **self._settings())


class SoftMarginLoss(_Settings):
    """log(1 + exp(-target * input)); as `functional.soft_margin_loss`."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares scores with targets of 1 and -1."""
        return functional.soft_margin_loss(input, target, **self._settings())


class TripletMarginLoss(_Settings):
    """Anchors nearer to a negative than to a positive; as `functional.triplet_margin_loss`."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compares vectors (batch, width)."""
        return functional.triplet_margin_loss(anchor, positive, negative, **self._settings())


class TripletMarginWithDistanceLoss(_Settings):
    """`TripletMarginLoss` of any distance; as `functional.triplet_margin_with_distance_loss`."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            distance_function=distance_function, margin=margin, swap=swap, reduction=reduction
        )

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compares what the distance takes."""
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, **self._settings()
        )


class MultiLabelMarginLoss(_Settings):
    """Scores of other classes near any target's; as `functional.multilabel_margin_loss`."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares scores (batch, classes) with class numbers up to the first -1."""
        return functional.multilabel_margin_loss(input, target, **self._settings())


class MultiMarginLoss(_Settings):
    """Scores of other classes near the target's; as `functional.multi_margin_loss`."""

    weight: Tensor | None

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(p=p, margin=margin, reduction=reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares scores (batch, classes) with class numbers (batch,)."""
        return functional.multi_margin_loss(input, target, weight=self.weight, **self._settings())


class MultiLabelSoftMarginLoss(_Settings):
    """Binary cross entropies of classes; as `functional.multilabel_soft_margin_loss`."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compares logits (batch, classes) with probabilities."""
        return functional.multilabel_soft_margin_loss(
            input, target, self.weight, **self._settings()
        )


class PoissonNLLLoss(_Settings):
    """Counts under Poisson distributions; as `functional.poisson_nll_loss`."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Compares logarithms of rates with counts."""
        return functional.poisson_nll_loss(log_input, target, **self._settings())


class GaussianNLLLoss(_Settings):
    """Targets under normal distributions; as `functional.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Compares means and variances with targets."""
        return functional.gaussian_nll_loss(input, target, var, **self._settings())


class CTCLoss(_Settings):
    """Sequences without an alignment; as `functional.ctc_loss`."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | list[int] | tuple[int, ...],
        target_lengths: Tensor | list[int] | tuple[int, ...],
    ) -> Tensor:
        """Compares log probabilities (time, batch, classes) with class numbers."""
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, **self._settings()
        )


class CosineSimilarity(Module):
    """The cosine of the angle between vectors; as `functional.cosine_similarity`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compares tensors of one shape along an axis."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of differences; as `functional.pairwise_distance`."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compares tensors of one shape along the last axis."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
