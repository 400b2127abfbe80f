"""What recording and running cost where there is next to nothing to compute.

Each function receives a framework, prepares fixed data on its device, and returns what is timed.
The Adam step of a perceptron whose layers are 4x4 has about 200 nodes over few elements.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Any

from frameworks import Framework
from kernel_workloads import Call, normal


class Run(Enum):
    """When recorded operators run."""

    NEVER = 0
    AT_THE_END = 1
    ONE_BY_ONE = 2


def adds(count: int, when: Run, framework: Framework) -> Call:
    """`x = x + y` on one element, so often."""
    start, y = framework.array(normal(1)), framework.array(normal(1, seed=1))
    framework.run(start, y)

    def call() -> None:
        x = start
        for _ in range(count):
            x = x + y
            if when is Run.ONE_BY_ONE:
                framework.run(x)
        if when is Run.AT_THE_END:
            framework.run(x)

    return call


LAYERS = 6


def tiny_step(framework: Framework) -> Callable[[], list[Any]]:
    """Records the step: forward, gradients, Adam. Gives the new weights and moments, unread."""
    lib = framework.lib
    x = framework.array(normal(2, 4))
    weights, means, roots = (
        [framework.array(normal(4, 4, seed=LAYERS * kind + layer)) for layer in range(LAYERS)]
        for kind in range(3)
    )
    squares = [(root * root).realize() for root in roots]

    def loss(weights: list[Any]) -> Any:
        y = x
        for weight in weights:
            y = lib.tanh(y @ weight)
        return (y * y).mean()

    gradients_of = lib.func.grad(loss)

    def record() -> list[Any]:
        changed = []
        for weight, gradient, mean, square in zip(
            weights, gradients_of(weights), means, squares, strict=True
        ):
            mean = mean * 0.9 + gradient * 0.1
            square = square * 0.999 + gradient * gradient * 0.001
            changed += [mean, square, weight - 0.001 * mean / (lib.sqrt(square) * 1.1 + 1e-8)]
        return changed

    return record


def cached_realize(framework: Framework) -> Callable[[], float]:
    """Seconds of `realize()` of the recorded step, whose plan is known, on an idle device."""
    record = tiny_step(framework)

    def call() -> float:
        changed = record()
        framework.synchronize()
        start = time.perf_counter()
        framework.lib.realize(changed)
        return time.perf_counter() - start

    return call


def replay(framework: Framework) -> Callable[[], float]:
    """Seconds of a call of the step under `jit`, on an idle device."""
    step = framework.recorded(tiny_step(framework))
    step()

    def call() -> float:
        framework.synchronize()
        start = time.perf_counter()
        step()
        return time.perf_counter() - start

    return call
