"""Schedules of half cosines (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

import math

import vkml
from vkml.optim.lr_scheduler.base import LRScheduler, period
from vkml.optim.optimizer import Optimizer


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
        self.T_max = period("CosineAnnealingLR", "T_max", T_max)
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


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the initial rate down to `eta_min`, one after the other.

    Args:
        optimizer: Whose rates are set.
        T_0: How many steps the first way down takes.
        T_mult: Each way is so many times longer than the one before.
        eta_min: The lowest rate.
        last_epoch: The last step that was done; -1 to begin.

    Attributes:
        T_i: How many steps the present way takes.
        T_cur: How many of them are done.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 (PyTorch's names)
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise vkml.ArgumentError(
                f"[CosineAnnealingWarmRestarts] T_0 is {T_0} and T_mult {T_mult}. Pass integers "
                "from 1."
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Moves on by one step, or to `epoch`, which may lie between two, and sets the rates."""
        self._refuse_recording()
        if epoch is None:
            self.T_cur += 1
            epoch = self.last_epoch + 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise vkml.ArgumentError(
                f"[CosineAnnealingWarmRestarts] epoch is {epoch}. Pass a number from 0."
            )
        else:
            self.T_i, self.T_cur = self.T_0, epoch
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr())
