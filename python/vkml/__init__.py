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
from vkml.composites import *  # noqa: F403
from vkml.errors import MissingAttributeError as MissingAttributeError
from vkml.errors import NamingError as NamingError
from vkml.errors import WorkerError as WorkerError
from vkml.grad_mode import enable_grad as enable_grad
from vkml.grad_mode import inference_mode as inference_mode
from vkml.grad_mode import is_grad_enabled as is_grad_enabled
from vkml.grad_mode import no_grad as no_grad
from vkml.grad_mode import set_grad_enabled as set_grad_enabled  # type: ignore[assignment]
from vkml.gradients import grad as grad
from vkml.methods import TensorMethods as _TensorMethods  # noqa: F401 (gives tensors methods)

if TYPE_CHECKING:
    from vkml import amp as amp
    from vkml import array_api as array_api
    from vkml import autograd as autograd
    from vkml import data as data
    from vkml import func as func
    from vkml import graph as graph
    from vkml import linalg as linalg
    from vkml import nn as nn
    from vkml import optim as optim
    from vkml import special as special
    from vkml import utils as utils
    from vkml.array_api import asarray as asarray
    from vkml.array_api import astype as astype
    from vkml.array_api import broadcast_arrays as broadcast_arrays
    from vkml.array_api import broadcast_shapes as broadcast_shapes
    from vkml.array_api import can_cast as can_cast
    from vkml.array_api import cumulative_prod as cumulative_prod
    from vkml.array_api import cumulative_sum as cumulative_sum
    from vkml.array_api import e as e
    from vkml.array_api import finfo as finfo
    from vkml.array_api import iinfo as iinfo
    from vkml.array_api import inf as inf
    from vkml.array_api import isdtype as isdtype
    from vkml.array_api import nan as nan
    from vkml.array_api import newaxis as newaxis
    from vkml.array_api import permute_dims as permute_dims
    from vkml.array_api import pi as pi
    from vkml.array_api import unique_all as unique_all
    from vkml.array_api import unique_counts as unique_counts
    from vkml.array_api import unique_inverse as unique_inverse
    from vkml.array_api import unique_values as unique_values
    from vkml.array_api import unstack as unstack
    from vkml.func import vmap as vmap
    from vkml.generator import Generator as Generator
    from vkml.linalg import cholesky_inverse as cholesky_inverse
    from vkml.linalg import cholesky_solve as cholesky_solve
    from vkml.linalg import multi_dot as multi_dot
    from vkml.matrices import cholesky as cholesky
    from vkml.matrices import det as det
    from vkml.matrices import inverse as inverse
    from vkml.matrices import logdet as logdet
    from vkml.matrices import matrix_exp as matrix_exp
    from vkml.matrices import matrix_power as matrix_power
    from vkml.matrices import pinverse as pinverse
    from vkml.matrices import slogdet as slogdet
    from vkml.mixed_precision import autocast as autocast
    from vkml.mixed_precision import get_autocast_dtype as get_autocast_dtype
    from vkml.mixed_precision import is_autocast_enabled as is_autocast_enabled
    from vkml.ranks import mode as mode
    from vkml.ranks import nanmedian as nanmedian
    from vkml.ranks import nanquantile as nanquantile
    from vkml.real_numbers import angle as angle
    from vkml.real_numbers import conj as conj
    from vkml.real_numbers import frexp as frexp
    from vkml.real_numbers import is_complex as is_complex
    from vkml.real_numbers import is_signed as is_signed
    from vkml.real_numbers import isreal as isreal
    from vkml.real_numbers import real as real
    from vkml.recording import jit as jit
    from vkml.serialization import load as load
    from vkml.serialization import save as save
    from vkml.windows import bartlett_window as bartlett_window
    from vkml.windows import blackman_window as blackman_window
    from vkml.windows import hamming_window as hamming_window
    from vkml.windows import hann_window as hann_window
    from vkml.windows import kaiser_window as kaiser_window

DeviceLike = Device | str  # noqa: F405
"""What arguments named `device` take: `vkml.cpu`, or a name such as "vulkan:1"."""

# Loaded at first use, so that `import vkml` stays fast.
_SUBMODULES = frozenset(
    (
        "amp",
        "array_api",
        "autograd",
        "data",
        "func",
        "graph",
        "linalg",
        "nn",
        "optim",
        "special",
        "utils",
    )
)
# Names of the Array API that mean nothing else in PyTorch.
_OF_ARRAY_API = frozenset(
    (
        *("asarray", "astype", "broadcast_arrays", "broadcast_shapes", "can_cast"),
        *("cumulative_prod", "cumulative_sum", "e", "finfo", "iinfo", "inf", "isdtype", "nan"),
        *("newaxis", "permute_dims", "pi", "unique_all", "unique_counts", "unique_inverse"),
        *("unique_values", "unstack"),
    )
)
_OF_LINALG = frozenset(("cholesky_inverse", "cholesky_solve", "multi_dot"))
_OF_MATRICES = frozenset(
    (
        *("cholesky", "det", "inverse", "logdet", "matrix_exp", "matrix_power", "pinverse"),
        "slogdet",
    )
)
_FROM_SUBMODULE = {
    **dict.fromkeys(_OF_ARRAY_API, "array_api"),
    **dict.fromkeys(_OF_LINALG, "linalg"),
    **dict.fromkeys(_OF_MATRICES, "matrices"),
    **dict.fromkeys(("autocast", "get_autocast_dtype", "is_autocast_enabled"), "mixed_precision"),
    "vmap": "func",
    **dict.fromkeys(("mode", "nanmedian", "nanquantile"), "ranks"),
    **dict.fromkeys(
        ("angle", "conj", "frexp", "is_complex", "is_signed", "isreal", "real"), "real_numbers"
    ),
    **dict.fromkeys(
        [f"{kind}_window" for kind in ("bartlett", "blackman", "hamming", "hann", "kaiser")],
        "windows",
    ),
    "Generator": "generator",
    "jit": "recording",
    "load": "serialization",
    "save": "serialization",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"vkml.{name}")
    if name in _FROM_SUBMODULE:
        value = getattr(import_module(f"vkml.{_FROM_SUBMODULE[name]}"), name)
        globals()[name] = value  # found at once from now on
        return value
    raise MissingAttributeError(f"module 'vkml' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_FROM_SUBMODULE})
