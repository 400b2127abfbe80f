"""Adamax (Kingma and Ba, 2015, section 7.1): Adam with the largest gradient in place of a mean."""

from __future__ import annotations

from typing import Any

import vkml
from vkml import Tensor
from vkml.optim.optimizer import (
    Optimizer,
    ParameterGroup,
    Parameters,
    ascent_or_decay,
    refuse_differentiable,
    require,
)


class Adamax(Optimizer):
    """Steps of about `lr`, scaled by a decaying maximum of the gradient's magnitude.

    m = b1 m + (1 - b1) g; u = max(b2 u, |g| + eps); p = p - lr / (1 - b1^t) * m / u.

    Args:
        params: What is updated.
        lr: Learning rate.
        betas: How much of the mean and of the maximum is kept each step.
        eps: Added to the magnitude.
        weight_decay: Adds `weight_decay * p` to the gradient.
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        capturable: Likewise; `vkml.jit` records any optimiser.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        refuse_differentiable(differentiable, "Adamax")
        require(lr >= 0, "Adamax", "lr", lr, "a number >= 0")
        require(eps >= 0, "Adamax", "eps", eps, "a number >= 0")
        require(all(0 <= b < 1 for b in betas), "Adamax", "betas", betas, "two numbers in [0, 1)")
        require(weight_decay >= 0, "Adamax", "weight_decay", weight_decay, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        if not state:
            state["step"] = 0
            state["exp_avg"] = vkml.zeros_like(parameter)
            state["exp_inf"] = vkml.zeros_like(parameter)
        state["step"] += 1
        gradient = ascent_or_decay(parameter, gradient, group)
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.assign_(mean * beta1 + gradient * (1 - beta1))
        largest.assign_(vkml.maximum(largest * beta2, gradient.abs() + group["eps"]))
        step_size = group["lr"] / (1 - beta1 ** state["step"])
        parameter.assign_(parameter - mean * step_size / largest)
