"""NAdam (Dozat, 2016): Adam that looks one step of momentum ahead."""

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


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, which grows over the first steps.

    The momentum of step t is mu_t = b1 (1 - 0.5 * 0.96^(t * momentum_decay)); the step is
    lr / (sqrt(v / (1 - b2^t)) + eps) times
    (1 - mu_t) / (1 - mu_1 ... mu_t) g + mu_(t+1) / (1 - mu_1 ... mu_(t+1)) m.

    Args:
        params: What is updated.
        lr: Learning rate.
        betas: How much of the mean of the gradient (m) and of its square (v) is kept each step.
        eps: Added to the root of the mean square.
        weight_decay: Adds `weight_decay * p` to the gradient.
        momentum_decay: How fast the momentum grows.
        decoupled_weight_decay: Shrinks the parameter itself instead, as AdamW does.
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        capturable: Likewise; `vkml.jit` records any optimiser.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
    """

    _floats = frozenset({"mu_product"})

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable(differentiable, "NAdam")
        require(lr >= 0, "NAdam", "lr", lr, "a number >= 0")
        require(eps >= 0, "NAdam", "eps", eps, "a number >= 0")
        require(all(0 <= b < 1 for b in betas), "NAdam", "betas", betas, "two numbers in [0, 1)")
        require(weight_decay >= 0, "NAdam", "weight_decay", weight_decay, "a number >= 0")
        require(momentum_decay >= 0, "NAdam", "momentum_decay", momentum_decay, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        if not state:
            state["step"] = 0
            state["mu_product"] = 1.0
            state["exp_avg"] = vkml.zeros_like(parameter)
            state["exp_avg_sq"] = vkml.zeros_like(parameter)
        state["step"] += 1
        step = state["step"]
        lr, decoupled = group["lr"], group["decoupled_weight_decay"]
        beta1, beta2 = group["betas"]
        gradient = ascent_or_decay(parameter, gradient, group, decay=not decoupled)
        value: Tensor = parameter
        if decoupled and group["weight_decay"] != 0:
            value = value * (1 - lr * group["weight_decay"])

        def momentum(at: int) -> float:
            factor: float = beta1 * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"]))
            return factor

        now, ahead = momentum(step), momentum(step + 1)
        state["mu_product"] *= now
        product = state["mu_product"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.assign_(mean * beta1 + gradient * (1 - beta1))
        square.assign_(square * beta2 + gradient * gradient * (1 - beta2))
        root = square.sqrt() * (1 - beta2**step) ** -0.5 + group["eps"]
        move = gradient * (lr * (1 - now) / (1 - product))
        move = move + mean * (lr * ahead / (1 - product * ahead))
        parameter.assign_(value - move / root)
