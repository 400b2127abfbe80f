"""Lion (Chen et al., 2023: Symbolic Discovery of Optimization Algorithms)."""

from __future__ import annotations

from typing import Any

import vkml
from vkml import Tensor
from vkml.optim.optimizer import Optimizer, ParameterGroup, Parameters, ascent_or_decay, require


class Lion(Optimizer):
    """Steps of exactly `lr` in each element: the sign of the momentum mixed with the gradient.

    u = sign(b1 m + (1 - b1) g); p = p (1 - lr weight_decay) - lr u; m = b2 m + (1 - b2) g.

    Args:
        params: What is updated.
        lr: Learning rate; the authors take a third to a tenth of AdamW's.
        betas: The share of the momentum in the step, and how much of it is kept.
        weight_decay: Shrinks the parameter itself; the authors take three to ten times AdamW's.
        maximize: Goes up instead of down.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        require(lr >= 0, "Lion", "lr", lr, "a number >= 0")
        require(all(0 <= b < 1 for b in betas), "Lion", "betas", betas, "two numbers in [0, 1)")
        require(weight_decay >= 0, "Lion", "weight_decay", weight_decay, "a number >= 0")
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize},
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        if not state:
            state["exp_avg"] = vkml.zeros_like(parameter)
        gradient = ascent_or_decay(parameter, gradient, group, decay=False)
        lr, (beta1, beta2) = group["lr"], group["betas"]
        mean = state["exp_avg"]
        direction = (mean * beta1 + gradient * (1 - beta1)).sign()
        mean.assign_(mean * beta2 + gradient * (1 - beta2))
        value = parameter * (1 - lr * group["weight_decay"])
        parameter.assign_(value - direction * lr)
