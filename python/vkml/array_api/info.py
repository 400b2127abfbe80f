"""What vkML has of the Array API, for programs that ask."""

from __future__ import annotations

from typing import Any

import vkml
from vkml._vkml import Device
from vkml._vkml import dtype as DType
from vkml.array_api.data_types import isdtype

INDEX_DTYPE = vkml.int64
"""The dtype of positions that functions of this namespace return."""

_DTYPES: dict[str, DType] = {
    "bool": vkml.bool,
    "int32": vkml.int32,
    "int64": vkml.int64,
    "uint8": vkml.uint8,
    "float32": vkml.float32,
    "float64": vkml.float64,
}


class NamespaceInfo:
    """The answers of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional, and the largest rank."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": vkml.MAX_DIMS,
        }

    def default_device(self) -> Device:
        """Where tensors are made unless something else is said."""
        return vkml.default_device()

    def devices(self) -> list[Device]:
        """Every device there is."""
        return [found.device for found in vkml.devices()]

    def default_dtypes(self, *, device: vkml.DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes of what is made from Python numbers, the same on every device."""
        return {"real floating": vkml.float32, "integral": vkml.int32, "indexing": INDEX_DTYPE}

    def dtypes(
        self,
        *,
        device: vkml.DeviceLike | None = None,
        kind: str | tuple[str, ...] | None = None,
    ) -> dict[str, DType]:
        """The standard's dtypes that exist, those of a kind where one is named.

        Args:
            device: Where. Every device has them all, but for float64, which a device may lack.
            kind: As for `isdtype`.
        """
        return {
            name: dtype for name, dtype in _DTYPES.items() if kind is None or isdtype(dtype, kind)
        }


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 (the standard's name)
    """What this namespace has: devices, dtypes and capabilities."""
    return NamespaceInfo()
