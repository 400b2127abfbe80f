"""L-BFGS (Liu and Nocedal, 1989): Newton's method with curvature from the last few steps.

All parameters are one vector. The two loops over the history run as one submission for each entry,
all of one structure, so that a growing history compiles nothing and nobody waits in between.
Bound: memory, two reads of the history for each step, besides the closure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vkml
from vkml import Tensor, enable_grad, no_grad
from vkml.optim.line_search import Point, strong_wolfe
from vkml.optim.optimizer import Optimizer, Parameters, check_closure, require

_LEAST_CURVATURE = 1e-10  # of a step that enters the history


class LBFGS(Optimizer):
    """Limited-memory BFGS. `step` needs a closure, and may call it several times.

    Args:
        params: What is updated: one group.
        lr: The length of a step in units of the quasi-Newton step.
        max_iter: Steps in each call of `step`.
        max_eval: Calls of the closure in each call of `step`; 1.25 `max_iter` if None.
        tolerance_grad: Ends when no element of the gradient is larger.
        tolerance_change: Ends when no parameter moves further, or the loss changes by less.
        history_size: How many steps the curvature is estimated from.
        line_search_fn: `strong_wolfe`, or None for steps of fixed length.
    """

    _integers = frozenset({"func_evals", "n_iter"})
    _floats = frozenset({"t", "prev_loss"})

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        require(lr >= 0, "LBFGS", "lr", lr, "a number >= 0")
        require(history_size >= 1, "LBFGS", "history_size", history_size, "an integer from 1")
        require(
            line_search_fn in (None, "strong_wolfe"),
            "LBFGS",
            "line_search_fn",
            repr(line_search_fn),
            "'strong_wolfe' or None",
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise vkml.ArgumentError(
                f"[LBFGS] got {len(self.param_groups)} parameter groups. The parameters are one "
                "vector: pass them as one list."
            )
        self._tensors: list[Tensor] = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Runs up to `max_iter` steps.

        Args:
            closure: Computes the loss again, with gradients, and returns it.

        Returns:
            The loss at the beginning.
        """
        if closure is None:
            raise vkml.ArgumentError(
                "[LBFGS] step needs a closure that clears the gradients, computes the loss, calls "
                "backward() and returns the loss."
            )
        check_closure("LBFGS", closure)
        with no_grad():
            first_loss = _call(closure)
            self._iterate(closure, float(first_loss))
        return first_loss

    def _iterate(self, closure: Callable[[], Any], loss: float) -> None:
        group = self.param_groups[0]
        state = self.state[self._tensors[0]]
        if not state:
            state.update(func_evals=0, n_iter=0)
        state["func_evals"] += 1
        evaluations, done = 1, 0
        gradient = self._flat_gradient()
        is_flat = _largest(gradient) <= group["tolerance_grad"]
        while not is_flat and done < group["max_iter"]:
            done += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=-gradient, old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
                length = min(1.0, 1.0 / float(gradient.abs().sum())) * group["lr"]
            else:
                self._remember(gradient)
                state["d"] = _direction(gradient, state)
                length = group["lr"]
            state.update(prev_flat_grad=gradient, prev_loss=loss)
            start = Point(0.0, loss, gradient, float(gradient @ state["d"]))
            if start.slope > -group["tolerance_change"]:
                state["t"] = length
                break
            end, calls = self._move(closure, start, length, done == group["max_iter"])
            state["t"], loss, gradient = end.step, end.value, end.gradient
            evaluations += calls
            state["func_evals"] += calls
            is_flat = calls > 0 and _largest(gradient) <= group["tolerance_grad"]
            if (
                evaluations >= group["max_eval"]
                or _largest(state["d"]) * state["t"] <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break

    def _remember(self, gradient: Tensor) -> None:
        """Adds the last step to the history if the function curves upwards along it."""
        state = self.state[self._tensors[0]]
        change = gradient - state["prev_flat_grad"]
        step = state["d"] * state["t"]
        curvature = change @ step
        scale = curvature / (change @ change)
        inverse = 1.0 / curvature
        vkml.realize([change, step, curvature, scale, inverse])
        if float(curvature) <= _LEAST_CURVATURE:
            return
        state["old_dirs"].append(change)
        state["old_stps"].append(step)
        state["ro"].append(inverse)
        state["H_diag"] = scale
        if len(state["ro"]) > self.param_groups[0]["history_size"]:
            for name in ("old_dirs", "old_stps", "ro"):
                del state[name][0]

    def _move(
        self, closure: Callable[[], Any], start: Point, length: float, is_last: bool
    ) -> tuple[Point, int]:
        """Goes along the direction; the new point, and how often the closure was called."""
        state, group = self.state[self._tensors[0]], self.param_groups[0]
        origin = [tensor.snapshot() for tensor in self._tensors]

        def place(step: float) -> None:
            begin = 0
            for tensor, old in zip(self._tensors, origin, strict=True):
                part = state["d"][begin : begin + tensor.numel()].reshape(tensor.shape)
                tensor.assign_(old + part.to(tensor.dtype) * step)
                begin += tensor.numel()
            vkml.realize(self._tensors)

        def evaluate(step: float) -> Point:
            place(step)
            loss = float(_call(closure))
            gradient = self._flat_gradient()
            return Point(step, loss, gradient, float(gradient @ state["d"]))

        if group["line_search_fn"] is not None:
            largest = _largest(state["d"])
            end, calls = strong_wolfe(evaluate, start, length, largest, group["tolerance_change"])
            place(end.step)
            return end, calls
        if is_last:  # nobody looks at the loss there before the next call of step
            place(length)
            return Point(length, start.value, start.gradient, start.slope), 0
        return evaluate(length), 1

    def _flat_gradient(self) -> Tensor:
        parts = [
            (vkml.zeros_like(tensor) if tensor.grad is None else tensor.grad).reshape(-1)
            for tensor in self._tensors
        ]
        flat = vkml.cat(parts)
        return flat.realize()


def _call(closure: Callable[[], Any]) -> Any:
    with enable_grad():
        return closure()


def _largest(vector: Tensor) -> float:
    return float(vector.abs().amax()) if vector.numel() > 0 else -math.inf


def _direction(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    """The inverse Hessian of the history times -gradient, by the recursion of two loops."""
    history = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    vector: Tensor = -gradient
    shares: list[Tensor] = []
    for change, step, inverse in reversed(history):
        share = (step @ vector) * inverse
        vector = vector - change * share
        vkml.realize([share, vector])
        shares.append(share)
    scale: Tensor | float = state["H_diag"]
    vector = vector * scale
    for (change, step, inverse), share in zip(history, reversed(shares), strict=True):
        vector = vector + step * (share - (change @ vector) * inverse)
        vkml.realize([vector])
    return vector
