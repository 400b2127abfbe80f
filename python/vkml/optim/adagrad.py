"""Adagrad (Duchi, Hazan and Singer, 2011)."""

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


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of all squares so far.

    s = s + g^2; p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).

    Args:
        params: What is updated.
        lr: Learning rate.
        lr_decay: How fast the rate falls with the step t.
        weight_decay: Adds `weight_decay * p` to the gradient.
        initial_accumulator_value: The sum at the beginning.
        eps: Added to the root.
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        fused: Likewise.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse_differentiable(differentiable, "Adagrad")
        for name, value in {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
        }.items():
            require(value >= 0, "Adagrad", name, value, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
                "maximize": maximize,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        if not state:
            state["step"] = 0
            state["sum"] = vkml.full_like(parameter, group["initial_accumulator_value"])
        state["step"] += 1
        gradient = ascent_or_decay(parameter, gradient, group)
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        total = state["sum"]
        total.assign_(total + gradient * gradient)
        parameter.assign_(parameter - gradient * rate / (total.sqrt() + group["eps"]))
