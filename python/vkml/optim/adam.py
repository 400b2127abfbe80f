"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

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


class Adam(Optimizer):
    """Steps of about `lr`, scaled by running means of the gradient and of its square.

    Args:
        params: What is updated.
        lr: Learning rate.
        betas: How much of the two running means is kept each step.
        eps: Added to the root of the mean square.
        weight_decay: Adds `weight_decay * p` to the gradient.
        amsgrad: Divides by the largest mean square so far (Reddi et al., 2018).
        maximize: Goes up instead of down.
        foreach: Accepted as PyTorch's, and without effect: all updates are one plan anyway.
        fused: Likewise.
        capturable: Likewise; `vkml.jit` records any optimiser.
        differentiable: False: updates have no gradients. `vkml.func` differentiates updates
            that are written as functions.
        decoupled_weight_decay: Shrinks the parameter itself instead, as `AdamW` does.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        refuse_differentiable(differentiable, name)
        require(lr >= 0, name, "lr", lr, "a number >= 0")
        require(eps >= 0, name, "eps", eps, "a number >= 0")
        require(all(0 <= b < 1 for b in betas), name, "betas", betas, "two numbers in [0, 1)")
        require(weight_decay >= 0, name, "weight_decay", weight_decay, "a number >= 0")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        if not state:
            state["step"] = 0
            state["exp_avg"] = vkml.zeros_like(parameter)
            state["exp_avg_sq"] = vkml.zeros_like(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = vkml.zeros_like(parameter)
        state["step"] += 1
        is_decoupled = group["decoupled_weight_decay"]
        gradient = ascent_or_decay(parameter, gradient, group, decay=not is_decoupled)
        value: Tensor = parameter
        if decay != 0 and is_decoupled:
            value = value * (1 - lr * decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.assign_(mean * beta1 + gradient * (1 - beta1))
        square.assign_(square * beta2 + gradient * gradient * (1 - beta2))
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.assign_(vkml.maximum(largest, square))
            square = largest
        # The corrections of both means for their start at zero are plain numbers.
        step_size = lr / (1 - beta1 ** state["step"])
        root_correction = (1 - beta2 ** state["step"]) ** -0.5
        parameter.assign_(value - mean * step_size / (square.sqrt() * root_correction + eps))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself; arguments as `Adam`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
