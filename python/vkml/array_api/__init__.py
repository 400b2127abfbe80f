"""The Array API 2024.12 (https://data-apis.org/array-api/2024.12) on vkML's tensors.

`x.__array_namespace__()` gives this module. `vkml` itself speaks PyTorch's dialect of the same
functions (`vkml.sort` returns values and indices, `vkml.var` divides by n - 1); here names,
arguments and dtypes are the standard's, within rank 4. `left_out.py` lists what is missing, with
reasons.
"""

from __future__ import annotations

import math as _math
from types import ModuleType as _ModuleType

import vkml as _vkml
from vkml._vkml import Device as Device
from vkml._vkml import bool as bool
from vkml._vkml import float32 as float32
from vkml._vkml import float64 as float64
from vkml._vkml import int32 as int32
from vkml._vkml import int64 as int64
from vkml._vkml import uint8 as uint8
from vkml.array_api import linalg as linalg
from vkml.array_api.creation import *  # noqa: F403
from vkml.array_api.data_types import *  # noqa: F403
from vkml.array_api.elementwise import *  # noqa: F403
from vkml.array_api.info import __array_namespace_info__ as __array_namespace_info__
from vkml.array_api.manipulation import *  # noqa: F403
from vkml.array_api.searching import *  # noqa: F403
from vkml.array_api.statistics import *  # noqa: F403

__array_api_version__ = "2024.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def check_version(api_version: str | None) -> _ModuleType:
    """This module, for a version of the standard that it has; None is the newest of them.

    Raises:
        ArgumentError: For another version.
    """
    from vkml import array_api

    if api_version not in (None, *_VERSIONS):
        raise _vkml.ArgumentError(
            f"[__array_namespace__] version {api_version!r} is not one of {', '.join(_VERSIONS)}"
        )
    return array_api
