"""Hooks round an optimiser's step, whichever class defines it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def between_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A method `step` that calls the optimiser's hooks before and after itself.

    A step that calls that of its base class calls them once.
    """

    @functools.wraps(step)
    def call(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if optimizer.__dict__.get("_is_stepping") or not (
            optimizer._step_pre_hooks or optimizer._step_post_hooks
        ):
            return step(optimizer, *args, **kwargs)
        for hook in tuple(optimizer._step_pre_hooks.values()):
            replaced = hook(optimizer, args, kwargs)
            if replaced is not None:
                args, kwargs = replaced
        optimizer._is_stepping = True
        try:
            result = step(optimizer, *args, **kwargs)
        finally:
            optimizer._is_stepping = False
        for hook in tuple(optimizer._step_post_hooks.values()):
            hook(optimizer, args, kwargs)
        return result

    return call
