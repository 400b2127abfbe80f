"""Loss scaling: keeps the gradients of float16 layers out of float16's underflow.

Micikevicius et al., "Mixed Precision Training" (2018), section 3.2; the scale adapts as in
PyTorch's class of this name.
"""

from __future__ import annotations

import math
from typing import Any

import vkml
from vkml import Tensor, no_grad
from vkml.optim import Optimizer
from vkml.trees import flatten, unflatten


class GradScaler:
    """Multiplies losses, divides gradients, and skips steps whose gradients are not finite.

    Args:
        device: Accepted as PyTorch's; losses and gradients say where they are.
        init_scale: The first factor.
        growth_factor: What the factor is multiplied by after `growth_interval` steps in a row
            without infinite or NaN gradients.
        backoff_factor: What it is multiplied by after a step with one.
        growth_interval: See growth_factor.
        enabled: False makes every method pass its argument through.
    """

    def __init__(
        self,
        device: str = "vulkan",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._scale = _positive("init_scale", init_scale)
        if not 1.0 < growth_factor < math.inf:
            raise vkml.ArgumentError(
                f"[GradScaler] growth_factor is {growth_factor}. Pass a number above 1."
            )
        if not 0.0 < backoff_factor < 1.0:
            raise vkml.ArgumentError(
                f"[GradScaler] backoff_factor is {backoff_factor}. Pass a number between 0 and 1."
            )
        if growth_interval < 1:
            raise vkml.ArgumentError(
                f"[GradScaler] growth_interval is {growth_interval}. Pass 1 or more."
            )
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._enabled = enabled
        self._good_steps = 0
        # Whether the gradients of an optimiser, by identity, were all finite; since update().
        self._finite: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A loss, or a tuple, list or dictionary of them, times the factor."""
        if not self._enabled:
            return outputs
        return unflatten(outputs, [loss * self._scale for loss in flatten(outputs)])

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides an optimiser's gradients by the factor, at most once before each update()."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise vkml.AutogradError(
                "[GradScaler.unscale_] these gradients are unscaled already. Call update() first."
            )
        inverse = 1.0 / self._scale
        with no_grad():
            parameters = [
                parameter
                for group in optimizer.param_groups
                for parameter in group["params"]
                if parameter.grad is not None
            ]
            gradients = [parameter.grad * inverse for parameter in parameters]
            checks: dict[vkml.Device, list[Tensor]] = {}
            for gradient in gradients:
                checks.setdefault(gradient.device, []).append(gradient.isfinite().all())
            # Read before anything is written: a failure leaves the gradients as they were.
            finite = all(bool(vkml.stack(each).all().item()) for each in checks.values())
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
        self._finite[id(optimizer)] = finite

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)` on unscaled gradients; nothing if some gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise vkml.ArgumentError(
                "[GradScaler.step] a closure computes gradients anew, which nobody would unscale. "
                "Call step() without one."
            )
        if id(optimizer) in self._stepped:
            raise vkml.AutogradError(
                "[GradScaler.step] this optimiser has stepped already. Call update() first."
            )
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return optimizer.step() if self._finite[id(optimizer)] else None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the factor to the steps since the last call, or sets it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = _positive("new_scale", new_scale)
        elif not self._finite:
            raise vkml.AutogradError(
                "[GradScaler.update] no optimiser has stepped. Call step(optimizer) first."
            )
        elif not all(self._finite.values()):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps >= self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale = grown if math.isfinite(grown) else self._scale
                self._good_steps = 0
        self._finite.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The factor now; 1 where scaling is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the factor grows by."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """What the factor shrinks by."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the factor grow."""
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict takes, by PyTorch's names; empty where scaling is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where state_dict() was called."""
        if not self._enabled:
            return
        if not state_dict:
            raise vkml.ArgumentError(
                "[GradScaler.load_state_dict] the state is empty: it comes from a scaler with "
                "enabled=False."
            )
        missing = sorted(set(self.state_dict()) - set(state_dict))
        if missing:
            raise vkml.ArgumentError(
                f"[GradScaler.load_state_dict] {missing} are not in the state, which holds "
                f"{sorted(state_dict)}. Pass what state_dict() gave."
            )
        self._scale = _positive("scale", state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = int(state_dict["_growth_tracker"])


def _positive(name: str, value: float | Tensor) -> float:
    number = float(value)
    if not 0.0 < number < math.inf:
        raise vkml.ArgumentError(f"[GradScaler] {name} is {number}. Pass a positive number.")
    return number
