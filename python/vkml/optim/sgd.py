"""Stochastic gradient descent, with momentum as in Sutskever et al. (2013)."""

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


class SGD(Optimizer):
    """`p = p - lr * g`; with momentum, g is a decaying sum of gradients.

    Args:
        params: What is updated.
        lr: Learning rate.
        momentum: How much of the running gradient is kept each step.
        dampening: How much of each new gradient is left out of the running gradient.
        weight_decay: Adds `weight_decay * p` to the gradient.
        nesterov: Looks one step of momentum ahead. Needs momentum and no dampening.
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        fused: Likewise.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse_differentiable(differentiable, "SGD")
        require(lr >= 0, "SGD", "lr", lr, "a number >= 0")
        require(momentum >= 0, "SGD", "momentum", momentum, "a number >= 0")
        require(weight_decay >= 0, "SGD", "weight_decay", weight_decay, "a number >= 0")
        require(
            not nesterov or (momentum > 0 and dampening == 0),
            "SGD",
            "nesterov",
            nesterov,
            "it with momentum > 0 and dampening = 0",
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        gradient = ascent_or_decay(parameter, gradient, group)
        momentum = group["momentum"]
        if momentum != 0:
            # The first running gradient is the first gradient, undamped. As a sum with zeros it
            # is planned like every later one.
            share = 1 - group["dampening"] if state else 1.0
            if not state:
                state["momentum_buffer"] = vkml.zeros_like(parameter)
            running = state["momentum_buffer"]
            running.assign_(running * momentum + gradient * share)
            gradient = gradient + running * momentum if group["nesterov"] else running
        parameter.assign_(parameter - gradient * group["lr"])
