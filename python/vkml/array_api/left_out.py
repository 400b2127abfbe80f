"""What of the Array API 2024.12 this namespace lacks, or has otherwise, and why: the one list."""

from __future__ import annotations

_COMPLEX = "kernels compute with real numbers alone"
_WIDTH = "the storage types are those of training: bool, uint8, int32, int64 and four floats"

LEFT_OUT: dict[str, str] = {
    "complex64": _COMPLEX,
    "complex128": _COMPLEX,
    "int8": _WIDTH,
    "int16": _WIDTH,
    "uint16": _WIDTH,
    "uint32": _WIDTH,
    "uint64": _WIDTH,
    "fft": "its results are complex",
}
"""Names of the namespace."""

OTHERWISE: dict[str, str] = {
    "Tensor.size": "PyTorch's method of that name; `array_api_compat.size` and `numel()` count",
    "sum of uint8": "int32: there is no unsigned dtype of the default integer's width",
    "prod of uint8": "int32: there is no unsigned dtype of the default integer's width",
    "cumulative_sum of uint8": "int32: no unsigned dtype has the default integer's width",
    "cumulative_prod of uint8": "int32: no unsigned dtype has the default integer's width",
    "linalg.trace of uint8": "int32: there is no unsigned dtype of the default integer's width",
    "rank": "at most 4 axes; more raise ShapeError",
}
"""Behaviour."""
