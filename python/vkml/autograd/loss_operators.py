"""The losses of `vkml.nn.functional` as operators of the registry, by their names.

Each is called with its tensors alone, other arguments at their defaults. Its gradients are those of
its formula, evaluated once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import vkml
from vkml.autograd.differentiable import Differentiable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vkml._vkml import OpRegistry, Tensor

# `cross_entropy` is an operator of the graph itself.
LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
)


class LossOperator(Differentiable):
    """A function of `vkml.nn.functional` as an operator."""

    def __init__(self, name: str) -> None:
        self._name = name

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """The function's value."""
        value: Tensor = getattr(vkml.nn.functional, self._name)(*inputs)
        return value

    def backward(
        self, output_gradient: Tensor, inputs: list[Tensor], output: Tensor
    ) -> Sequence[Tensor | None]:
        """The gradients of the inputs that are floats and that the value depends on."""
        del output
        is_recorded = vkml.is_grad_enabled()
        with vkml.enable_grad():
            # A name of its own for each input, also where two are the same tensor.
            named = [
                (x * 1 if x.requires_grad else x.detach().requires_grad_())
                if x.is_floating_point()
                else x
                for x in inputs
            ]
            value = self.forward(named)
            floats = [x for x in named if x.requires_grad]
            found = iter(
                vkml.grad(
                    value, floats, output_gradient, create_graph=is_recorded, allow_unused=True
                )
            )
            return [next(found) if x.requires_grad else None for x in named]


def register_losses(registry: OpRegistry) -> None:
    """Adds the losses to a registry."""
    for name in LOSSES:
        registry.register_op(name, LossOperator(name))
