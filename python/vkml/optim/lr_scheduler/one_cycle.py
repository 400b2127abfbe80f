"""Schedules that raise and lower the rate, and move the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml.optim.lr_scheduler.base import LRScheduler
from vkml.optim.optimizer import Optimizer


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
        three_phase: Whether the way down takes as long as the way up and ends at the initial rate,
            and the remaining steps lead from there to the last rate.
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
        three_phase: bool = False,
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
        self.three_phase = three_phase
        groups = optimizer.param_groups
        for group, peak in zip(groups, _for_each_group(max_lr, len(groups)), strict=True):
            if last_epoch == -1:
                group["max_lr"] = peak
                group["initial_lr"] = group["lr"] = peak / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["base_momentum"] = base_momentum
                    group["max_momentum"] = max_momentum
                    _set_momentum("OneCycleLR", group, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def _phases(self) -> list[tuple[float, tuple[str, str], tuple[str, str]]]:
        """Of each phase its last step, and where rates and momenta begin and end."""
        top = self.pct_start * self.total_steps - 1
        last = self.total_steps - 1
        up = (top, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
        if not self.three_phase:
            return [up, (last, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
        return [
            up,
            (2 * top, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
            (last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
        ]

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`; sets the momenta too."""
        if self.last_epoch > self.total_steps:  # one more than there are: loops end with a step
            raise vkml.ArgumentError(
                f"[OneCycleLR] step {self.last_epoch} of {self.total_steps}. Ask for more "
                f"total_steps."
            )
        phases = self._phases()
        number = next((i for i, p in enumerate(phases) if self.last_epoch <= p[0]), len(phases) - 1)
        end, rate_names, momentum_names = phases[number]
        start = phases[number - 1][0] if number > 0 else 0.0
        share = (self.last_epoch - start) / (end - start) if end > start else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[rate_names[0]], group[rate_names[1]], share))
            if self.cycle_momentum:
                ends = (group[momentum_names[0]], group[momentum_names[1]])
                _set_momentum("OneCycleLR", group, self._between(*ends, share))
        return rates


def _set_momentum(name: str, group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    elif "momentum" in group:
        group["momentum"] = momentum
    else:
        raise vkml.ArgumentError(
            f"[{name}] the optimizer has no momentum to cycle. Pass cycle_momentum=False."
        )


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` and down again, over and over (Smith, 2017).

    Args:
        optimizer: Whose rates are set.
        base_lr: The lowest rate, for all groups or for each.
        max_lr: The highest rate, for all groups or for each.
        step_size_up: How many steps the way up takes.
        step_size_down: How many the way down takes; as many as the way up if None.
        mode: `triangular` for equal peaks; `triangular2` halves the height with each cycle;
            `exp_range` multiplies it by `gamma` with each step.
        gamma: The factor of `exp_range`.
        scale_fn: The factor on the height, instead of `mode`.
        scale_mode: Whether `scale_fn` takes the number of the `cycle`, from 1, or of the
            `iterations`.
        cycle_momentum: Whether momentum (or the first beta) moves the other way.
        base_momentum: The momentum at the highest rate.
        max_momentum: The momentum at the lowest rate.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise vkml.ArgumentError(
                f"[CyclicLR] mode is {mode!r}. Pass 'triangular', 'triangular2' or 'exp_range', or "
                "a scale_fn."
            )
        self.step_size_up = step_size_up
        self.step_size_down = step_size_up if step_size_down is None else step_size_down
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        groups = optimizer.param_groups
        self.max_lrs = _for_each_group(max_lr, len(groups))
        for group, low in zip(groups, _for_each_group(base_lr, len(groups)), strict=True):
            if last_epoch == -1:
                group["lr"] = group["initial_lr"] = low
            if cycle_momentum:
                group["base_momentum"] = base_momentum
                group["max_momentum"] = max_momentum
                _set_momentum("CyclicLR", group, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _height(self) -> float:
        """Where between the lowest and the highest rate the last step is, from 0 to 1."""
        length = self.step_size_up + self.step_size_down
        cycle = 1 + self.last_epoch // length
        position = self.last_epoch % length
        if position <= self.step_size_up:
            height = position / self.step_size_up
        else:
            height = (length - position) / self.step_size_down
        if self.scale_fn is not None:
            counted = cycle if self.scale_mode == "cycle" else self.last_epoch
            return height * self.scale_fn(counted)
        if self.mode == "triangular2":
            return float(height / 2.0 ** (cycle - 1))
        if self.mode == "exp_range":
            return float(height * self.gamma**self.last_epoch)
        return height

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`; sets the momenta too."""
        height = self._height()
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                fall = (group["max_momentum"] - group["base_momentum"]) * height
                _set_momentum("CyclicLR", group, group["max_momentum"] - fall)
        return [
            low + (high - low) * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


def _for_each_group(rates: float | Sequence[float], groups: int) -> list[float]:
    return [rates] * groups if isinstance(rates, (int, float)) else list(rates)
