"""Schedules that multiply the rate by a factor: by a function, at given steps, or evenly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import vkml
from vkml.optim.lr_scheduler.base import LRScheduler, period
from vkml.optim.optimizer import Optimizer


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(step)`.

    Args:
        optimizer: Whose rates are set.
        lr_lambda: One function for all groups, or one for each.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _one_for_each_group("LambdaLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        return [
            base * factor(self.last_epoch)
            for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplies by `gamma` every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = period("StepLR", "step_size", step_size)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]


class MultiStepLR(LRScheduler):
    """Multiplies by `gamma` at each of the steps in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        times = Counter(self.milestones)[self.last_epoch]
        return [rate * self.gamma**times for rate in self._rates()]


class ExponentialLR(LRScheduler):
    """Multiplies by `gamma` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]


class LinearLR(LRScheduler):
    """Moves the factor on the rate evenly from `start_factor` to `end_factor`.

    Args:
        optimizer: Whose rates are set.
        start_factor: The factor at the beginning.
        end_factor: The factor after `total_iters` steps and from then on.
        total_iters: How many steps the move takes.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise vkml.ArgumentError(
                f"[LinearLR] factors are {start_factor} and {end_factor}. Pass numbers in (0, 1] "
                f"and [0, 1]."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._rates()]


class MultiplicativeLR(LRScheduler):
    """Multiplies by `lr_lambda(step)` every step.

    Args:
        optimizer: Whose rates are set.
        lr_lambda: One function for all groups, or one for each.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _one_for_each_group("MultiplicativeLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0:
            return self._rates()
        return [
            rate * factor(self.last_epoch)
            for rate, factor in zip(self._rates(), self.lr_lambdas, strict=True)
        ]


class ConstantLR(LRScheduler):
    """Multiplies by `factor` for the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < factor <= 1.0:
            raise vkml.ArgumentError(f"[ConstantLR] factor is {factor}. Pass a number in (0, 1].")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        if self.last_epoch == self.total_iters:
            return [rate / self.factor for rate in self._rates()]
        return self._rates()


class PolynomialLR(LRScheduler):
    """The initial rate times `(1 - step / total_iters) ** power`, 0 from then on."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (now / before) ** self.power for rate in self._rates()]


def _one_for_each_group(
    name: str,
    optimizer: Optimizer,
    functions: Callable[[int], float] | Sequence[Callable[[int], float]],
) -> list[Callable[[int], float]]:
    groups = len(optimizer.param_groups)
    listed = [functions] * groups if callable(functions) else list(functions)
    if len(listed) != groups:
        raise vkml.ArgumentError(
            f"[{name}] got {len(listed)} functions for {groups} parameter groups. Pass one "
            "function, or one for each group."
        )
    return listed
