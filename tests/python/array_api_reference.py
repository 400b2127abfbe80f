"""What vkml.array_api is compared with: array-api-strict, at the version of the standard."""

from typing import Any

import pytest

import vkml

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
strict.set_array_api_strict_flags(api_version="2024.12")

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")


def dtype_name(dtype: Any) -> str:
    """The name of a data type of either library."""
    if isinstance(dtype, type(vkml.float32)):
        return repr(dtype).removeprefix("vkml.")
    return str(dtype).removeprefix("array_api_strict.")
