"""Learning-rate schedules: the base class.

A rate is a Python number: changing it never compiles anything. Each schedule computes the next rate
from the present one, so that several can work on one optimiser. `step()` is called after the
optimiser's, once for each epoch or batch.
"""

from __future__ import annotations

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
                raise vkml.NamingError(
                    f"[{type(self).__name__}] a group of parameters has no 'initial_lr', which a "
                    f"schedule that goes on from step {last_epoch} needs. Pass last_epoch=-1 to "
                    f"begin, or load the optimiser's state."
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
        self._refuse_recording()
        self.last_epoch += 1
        self._set_rates(self.get_lr())

    def _refuse_recording(self) -> None:
        if vkml.is_recording():
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] a schedule cannot be stepped in a function that vkml.jit "
                f"records. Step it outside: the recorded function uses the rate of now."
            )

    def _set_rates(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
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


def period(op: str, name: str, steps: int) -> int:
    """Steps that a schedule divides by; ArgumentError in the name of `op` from 0 down."""
    if not steps > 0:
        raise vkml.ArgumentError(f"[{op}] {name} is {steps}. Pass a number of steps from 1.")
    return steps


def _holds_functions(value: object) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))
