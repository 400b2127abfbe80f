"""Adadelta (Zeiler, 2012)."""

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


class Adadelta(Optimizer):
    """Scales the gradient by the ratio of two running roots: of past steps and of gradients.

    v = rho v + (1 - rho) g^2; d = sqrt(a + eps) / sqrt(v + eps) * g;
    a = rho a + (1 - rho) d^2; p = p - lr d.

    Args:
        params: What is updated.
        lr: What the step is multiplied by.
        rho: How much of both running means is kept each step.
        eps: Added under both roots.
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
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable(differentiable, "Adadelta")
        require(lr >= 0, "Adadelta", "lr", lr, "a number >= 0")
        require(0 <= rho <= 1, "Adadelta", "rho", rho, "a number in [0, 1]")
        require(eps >= 0, "Adadelta", "eps", eps, "a number >= 0")
        require(weight_decay >= 0, "Adadelta", "weight_decay", weight_decay, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
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
            state["square_avg"] = vkml.zeros_like(parameter)
            state["acc_delta"] = vkml.zeros_like(parameter)
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        gradient = ascent_or_decay(parameter, gradient, group)
        square, moved = state["square_avg"], state["acc_delta"]
        square.assign_(square * rho + gradient * gradient * (1 - rho))
        move = (moved + eps).sqrt() / (square + eps).sqrt() * gradient
        moved.assign_(moved * rho + move * move * (1 - rho))
        parameter.assign_(parameter - move * group["lr"])
