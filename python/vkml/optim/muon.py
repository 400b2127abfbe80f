"""Muon (Jordan et al., 2024): momentum whose matrix is made orthogonal by Newton and Schulz.

Bound: matrix products, three for each of the five iterations, all with the smaller extent inside.
"""

from __future__ import annotations

import math
from typing import Any

import vkml
from vkml import Tensor
from vkml.optim.optimizer import Optimizer, ParameterGroup, Parameters, require


class Muon(Optimizer):
    """Moves a matrix along the nearest orthogonal matrix to its momentum.

    The iteration X <- a X + (b X X^T + c (X X^T)^2) X drives all singular values of the momentum
    near 1. It runs in the parameter's dtype; PyTorch's runs in bfloat16, and the two agree to
    bfloat16's precision. For the matrices of hidden layers: give embeddings, biases and the last
    layer to AdamW.

    Args:
        params: Matrices to update.
        lr: Learning rate.
        weight_decay: Shrinks the parameter itself.
        momentum: How much of the running gradient is kept each step.
        nesterov: Looks one step of momentum ahead.
        ns_coefficients: a, b and c of the iteration.
        eps: The least norm that the momentum is divided by.
        ns_steps: How many iterations.
        adjust_lr_fn: The factor on the rate of an (m, n) matrix: `original`, the default, for
            sqrt(max(1, m / n)); `match_rms_adamw` for 0.2 sqrt(max(m, n)) (Liu et al., 2025).
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        require(lr >= 0, "Muon", "lr", lr, "a number >= 0")
        require(momentum >= 0, "Muon", "momentum", momentum, "a number >= 0")
        require(weight_decay >= 0, "Muon", "weight_decay", weight_decay, "a number >= 0")
        require(0 <= ns_steps < 100, "Muon", "ns_steps", ns_steps, "a number from 0 to 99")
        require(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            "Muon",
            "adjust_lr_fn",
            repr(adjust_lr_fn),
            "'original' or 'match_rms_adamw'",
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )

    def add_param_group(self, param_group: ParameterGroup) -> None:
        """Adds a group of matrices; raises ShapeError for a parameter of another rank."""
        super().add_param_group(param_group)
        for tensor in self.param_groups[-1]["params"]:
            if tensor.ndim != 2:
                self.param_groups.pop()
                raise vkml.ShapeError(
                    f"[Muon] a parameter has shape {tuple(tensor.shape)}. Muon takes matrices; "
                    "give the other parameters to AdamW."
                )

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        if not state:
            state["momentum_buffer"] = vkml.zeros_like(parameter)
        lr, momentum = group["lr"], group["momentum"]
        running = state["momentum_buffer"]
        running.assign_(running * momentum + gradient * (1 - momentum))
        move: Tensor = running
        if group["nesterov"]:
            move = gradient * (1 - momentum) + running * momentum
        move = _orthogonal(move, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = parameter.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        else:
            rate = lr * math.sqrt(max(1.0, rows / columns))
        parameter.assign_(parameter * (1 - lr * group["weight_decay"]) - move * rate)


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """U V^T of the singular value decomposition U S V^T, roughly."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.transpose(0, 1) if tall else matrix
    x = x / (x * x).sum().sqrt().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.transpose(0, 1)
        x = x * a + (gram * b + gram @ gram * c) @ x
    return x.transpose(0, 1) if tall else x
