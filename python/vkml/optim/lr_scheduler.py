"""Learning-rate schedules. A rate is a Python number: changing it never compiles anything.

Each schedule computes the next rate from the present one, so that several can work on one
optimiser. `step()` is called after the optimiser's, once for each epoch or batch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import vkml
from vkml.optim.optimizer import Optimizer


class LRScheduler:
    """Base class: counts steps and writes rates into the optimiser's groups.

    Args:
        optimizer: Whose rates are set.
        last_epoch: The last step that was done; -1 to begin.

    Attributes:
        base_lrs: The rates of the groups at the beginning.
        last_epoch: The number of the last step.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in param_groups when resuming a scheduler"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = self._rates()
        self.step()

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self) -> None:
        """Moves on by one step and sets the rates."""
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser and functions."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "optimizer" and not _holds_functions(value)
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)


def _holds_functions(value: object) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))


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
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise vkml.ArgumentError(
                f"[LambdaLR] got {len(self.lr_lambdas)} functions for {groups} parameter groups."
            )
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
        self.step_size = step_size
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


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to `eta_min` (Loshchilov and Hutter, 2017).

    Args:
        optimizer: Whose rates are set.
        T_max: How many steps the way down takes; past it the rate rises again.
        eta_min: The lowest rate.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 (PyTorch's name)
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        if self.last_epoch == 0:
            return self._rates()
        height = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        if before == 0.0:  # at the lowest point there is no ratio to continue by
            first_rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * first_rise
                for rate, base in zip(self._rates(), self.base_lrs, strict=True)
            ]
        return [height / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing, once (Smith and Topin, 2018).

    Args:
        optimizer: Whose rates are set.
        max_lr: The highest rate, for all groups or for each.
        total_steps: How many steps there are; or give the next two.
        epochs: Times this number of passes.
        steps_per_epoch: Of this many steps.
        pct_start: The share of steps that go up.
        anneal_strategy: `cos` or `linear`.
        cycle_momentum: Whether momentum (or the first beta) moves the other way.
        base_momentum: The momentum at the highest rate.
        max_momentum: The momentum at both ends.
        div_factor: max_lr / initial rate.
        final_div_factor: initial rate / last rate.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        *,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise vkml.ArgumentError(
                    "[OneCycleLR] the number of steps is unknown. Pass total_steps, or epochs and "
                    "steps_per_epoch."
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0.0 <= pct_start <= 1.0:
            raise vkml.ArgumentError(
                f"[OneCycleLR] total_steps is {total_steps} and pct_start {pct_start}. Pass a "
                f"positive number of steps and a share in [0, 1]."
            )
        if anneal_strategy not in ("cos", "linear"):
            raise vkml.ArgumentError(
                f"[OneCycleLR] anneal_strategy is {anneal_strategy!r}. Pass 'cos' or 'linear'."
            )
        self.total_steps = total_steps
        self.pct_start = pct_start
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        groups = optimizer.param_groups
        highest = [max_lr] * len(groups) if isinstance(max_lr, (int, float)) else list(max_lr)
        for group, peak in zip(groups, highest, strict=True):
            if last_epoch == -1:
                group["max_lr"] = peak
                group["initial_lr"] = group["lr"] = peak / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["base_momentum"] = base_momentum
                    group["max_momentum"] = max_momentum
                    _set_momentum(group, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def _phase(self) -> tuple[bool, float]:
        """Whether the rate is on its way up, and how far on this way the last step is."""
        top = self.pct_start * self.total_steps - 1
        last = self.total_steps - 1
        if self.last_epoch > self.total_steps:  # one more than there are: loops end with a step
            raise vkml.ArgumentError(
                f"[OneCycleLR] step {self.last_epoch} of {self.total_steps}. Ask for more "
                f"total_steps."
            )
        if self.last_epoch <= top:
            return True, self.last_epoch / top if top > 0 else 1.0
        return False, (self.last_epoch - top) / (last - top)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`; sets the momenta too."""
        rising, share = self._phase()
        rates = []
        for group in self.optimizer.param_groups:
            start, end = (
                (group["initial_lr"], group["max_lr"])
                if rising
                else (group["max_lr"], group["min_lr"])
            )
            rates.append(self._between(start, end, share))
            if self.cycle_momentum:
                ends = (group["max_momentum"], group["base_momentum"])
                start, end = ends if rising else ends[::-1]
                _set_momentum(group, self._between(start, end, share))
        return rates


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    elif "momentum" in group:
        group["momentum"] = momentum
    else:
        raise vkml.ArgumentError(
            "[OneCycleLR] the optimizer has no momentum to cycle. Pass cycle_momentum=False."
        )


class SequentialLR(LRScheduler):
    """One schedule after the other.

    Args:
        optimizer: Whose rates are set.
        schedulers: The schedules in order, all of this optimiser.
        milestones: The steps at which the second and later ones take over.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise vkml.ArgumentError(
                f"[SequentialLR] {len(schedulers)} schedules need {len(schedulers) - 1} "
                f"milestones, got {len(milestones)}."
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.optimizer = optimizer
        self.last_epoch = last_epoch + 1
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        # Each schedule moved the rates when it was built: begin again with the first one's.
        self._begin(self._schedulers[0])

    def _begin(self, scheduler: LRScheduler) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        scheduler.last_epoch = -1
        scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def step(self) -> None:
        """Moves on by one step and sets the rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            self._begin(scheduler)
        else:
            scheduler.step()
            self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The step, and the state of each schedule."""
        return {
            "last_epoch": self.last_epoch,
            "_last_lr": self._last_lr,
            "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.last_epoch = state_dict["last_epoch"]
        self._last_lr = state_dict["_last_lr"]
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies by `factor` when a metric has stopped improving.

    Args:
        optimizer: Whose rates are set.
        mode: `min` if the metric should fall, `max` if it should rise.
        factor: What rates are multiplied by.
        patience: How many steps without improvement are let pass.
        threshold: The least change that counts as improvement.
        threshold_mode: Whether `threshold` is a share of the best value (`rel`) or a difference
            from it (`abs`).
        cooldown: How many steps after a reduction do not count.
        min_lr: The lowest rate.
        eps: The least change of a rate that is carried out.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise vkml.ArgumentError(f"[ReduceLROnPlateau] factor is {factor}. Pass less than 1.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise vkml.ArgumentError(
                f"[ReduceLROnPlateau] mode is {mode!r} and threshold_mode {threshold_mode!r}. "
                f"Pass 'min' or 'max', and 'rel' or 'abs'."
            )
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.cooldown_counter = 0
        self.min_lr = min_lr
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.last_epoch = 0
        self.base_lrs = self._rates()
        self._last_lr = self._rates()

    def is_better(self, metric: float) -> bool:
        """Whether `metric` improves on the best so far by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "abs":
            return sign * metric > sign * self.best + self.threshold
        bound = self.best * (1.0 + sign * self.threshold)
        return sign * metric > sign * bound

    def step(self, metrics: Any = math.nan) -> None:
        """Moves on by one step.

        Args:
            metrics: The metric's value now: a number or a tensor of one element.
        """
        metric = float(metrics)
        self.last_epoch += 1
        if self.is_better(metric):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        for group in self.optimizer.param_groups:
            rate = max(group["lr"] * self.factor, self.min_lr)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
