"""The schedule that follows a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import vkml
from vkml.optim.lr_scheduler.base import LRScheduler
from vkml.optim.optimizer import Optimizer


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
        min_lr: The lowest rate, for all groups or a list with one for each.
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
        min_lr: float | Sequence[float] = 0.0,
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
        groups = len(optimizer.param_groups)
        is_list = isinstance(min_lr, Sequence)
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * groups
        if is_list and len(self.min_lrs) != groups:
            raise vkml.ArgumentError(
                f"[ReduceLROnPlateau] min_lr has {len(self.min_lrs)} entries for {groups} "
                "parameter groups. Pass one for each group, or one number."
            )
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
        self._refuse_recording()
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
        groups = self.optimizer.param_groups
        # A group that was added later has the lowest rate of the last one.
        limits = self.min_lrs + self.min_lrs[-1:] * (len(groups) - len(self.min_lrs))
        for group, least in zip(groups, limits, strict=True):
            rate = max(group["lr"] * self.factor, least)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
