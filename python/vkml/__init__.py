"""vkML: deep learning on any GPU with a Vulkan driver, and on the CPU.

Operators record a lazy graph; a value is computed when something observes it. The API is shaped
like PyTorch's: tensors, `vkml.nn`, `vkml.optim`, `vkml.data`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Before anything that loads the native module.
from vkml import openmp as _openmp  # noqa: F401 (sets how threads wait)
from vkml import pickling as _pickling  # noqa: F401 (registers tensors with pickle)

# Everything the native module offers, because a new row of the table of operators must appear here
# by itself.
from vkml._vkml import *  # noqa: F403
from vkml._vkml import __version__ as __version__
from vkml.grad_mode import enable_grad as enable_grad
from vkml.grad_mode import is_grad_enabled as is_grad_enabled
from vkml.grad_mode import no_grad as no_grad
from vkml.grad_mode import set_grad_enabled as set_grad_enabled  # type: ignore[assignment]

if TYPE_CHECKING:
    from vkml import autograd as autograd
    from vkml import data as data
    from vkml import func as func
    from vkml import linalg as linalg
    from vkml import nn as nn
    from vkml import optim as optim
    from vkml.recording import jit as jit
    from vkml.serialization import load as load
    from vkml.serialization import save as save

DeviceLike = Device | str  # noqa: F405
"""What arguments named `device` take: `vkml.cpu`, or a name such as "vulkan:1"."""

# Loaded at first use, so that `import vkml` stays fast.
_SUBMODULES = frozenset({"autograd", "data", "func", "linalg", "nn", "optim"})
_FROM_SUBMODULE = {"jit": "recording", "load": "serialization", "save": "serialization"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"vkml.{name}")
    if name in _FROM_SUBMODULE:
        value = getattr(import_module(f"vkml.{_FROM_SUBMODULE[name]}"), name)
        globals()[name] = value  # found at once from now on
        return value
    raise AttributeError(f"module 'vkml' has no attribute '{name}'")
