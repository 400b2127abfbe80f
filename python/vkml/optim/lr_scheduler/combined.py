"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import vkml
from vkml.optim.lr_scheduler.base import LRScheduler
from vkml.optim.optimizer import Optimizer


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
        self._refuse_recording()
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
        return _state_of(self, self._schedulers)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        _load_state(self, self._schedulers, state_dict)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: their factors multiply.

    Args:
        schedulers: The schedules, all of one optimiser.
        optimizer: That optimiser; None for the first schedule's.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise vkml.ArgumentError("[ChainedScheduler] got no schedules. Pass at least one.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for number, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not self.optimizer:
                raise vkml.ArgumentError(
                    f"[ChainedScheduler] schedule {number} belongs to another optimizer. Pass "
                    "schedules of one optimizer."
                )
        self._schedulers = list(schedulers)
        self.base_lrs = self._schedulers[0].base_lrs
        self.last_epoch = self._schedulers[0].last_epoch
        self._last_lr = self._rates()

    def step(self) -> None:
        """Moves every schedule on by one step, in order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self.last_epoch = self._schedulers[0].last_epoch
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """The state of each schedule."""
        return _state_of(self, self._schedulers)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        _load_state(self, self._schedulers, state_dict)


def _state_of(scheduler: LRScheduler, parts: Sequence[LRScheduler]) -> dict[str, Any]:
    return {
        "last_epoch": scheduler.last_epoch,
        "_last_lr": scheduler.get_last_lr(),
        "_schedulers": [part.state_dict() for part in parts],
    }


def _load_state(
    scheduler: LRScheduler, parts: Sequence[LRScheduler], state_dict: dict[str, Any]
) -> None:
    scheduler.last_epoch = state_dict["last_epoch"]
    scheduler._last_lr = state_dict["_last_lr"]
    for part, state in zip(parts, state_dict["_schedulers"], strict=True):
        part.load_state_dict(state)
