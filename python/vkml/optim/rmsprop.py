"""RMSprop (Hinton, 2012; centred as in Graves, 2013)."""

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


class RMSprop(Optimizer):
    """Divides the gradient by the root of a running mean of its square.

    Args:
        params: What is updated.
        lr: Learning rate.
        alpha: How much of the running mean is kept each step.
        eps: Added to the root.
        weight_decay: Adds `weight_decay * p` to the gradient.
        momentum: How much of the last step is repeated.
        centered: Takes the square of the mean gradient away from the mean square.
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        capturable: Likewise; `vkml.jit` records any optimiser.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable(differentiable, "RMSprop")
        require(lr >= 0, "RMSprop", "lr", lr, "a number >= 0")
        require(eps >= 0, "RMSprop", "eps", eps, "a number >= 0")
        require(alpha >= 0, "RMSprop", "alpha", alpha, "a number >= 0")
        require(momentum >= 0, "RMSprop", "momentum", momentum, "a number >= 0")
        require(weight_decay >= 0, "RMSprop", "weight_decay", weight_decay, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        lr, alpha, momentum = group["lr"], group["alpha"], group["momentum"]
        if not state:
            state["step"] = 0
            state["square_avg"] = vkml.zeros_like(parameter)
            if momentum > 0:
                state["momentum_buffer"] = vkml.zeros_like(parameter)
            if group["centered"]:
                state["grad_avg"] = vkml.zeros_like(parameter)
        state["step"] += 1
        gradient = ascent_or_decay(parameter, gradient, group)
        square = state["square_avg"]
        square.assign_(square * alpha + gradient * gradient * (1 - alpha))
        variance: Tensor = square
        if group["centered"]:
            mean = state["grad_avg"]
            mean.assign_(mean * alpha + gradient * (1 - alpha))
            variance = square - mean * mean
        move = gradient / (variance.sqrt() + group["eps"])
        if momentum > 0:
            running = state["momentum_buffer"]
            running.assign_(running * momentum + move)
            move = running
        parameter.assign_(parameter - move * lr)
