"""Anomaly mode: where a NaN gradient comes from."""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING

import vkml
from vkml import _vkml

if TYPE_CHECKING:
    from types import TracebackType

_PACKAGE = os.path.dirname(os.path.abspath(vkml.__file__)) + os.sep


def _place() -> str:
    """The line of the user's program that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(
        _PACKAGE
    ):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    return f"{file}:{line}, in {frame.f_code.co_name}" + (f": {source}" if source else "")


class set_detect_anomaly:  # noqa: N801 (PyTorch's name)
    """Turns anomaly mode on or off for all threads; with `with`, until the end of the block.

    While it is on, each operator that records a gradient remembers the line that called it, and
    backward passes compute and check every gradient as they go: the first NaN raises AutogradError
    with the operator and that line. Nothing is fused across operators then; it is for debugging.

    Args:
        mode: Whether it is on.
        check_nan: Whether gradients are checked; otherwise lines are remembered only.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_vkml.is_anomaly_enabled(), _vkml.is_anomaly_check_nan_enabled())
        _vkml._set_place_provider(_place)
        _vkml._set_detect_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _vkml._set_detect_anomaly(*self._before)


class detect_anomaly(set_detect_anomaly):  # noqa: N801 (PyTorch's name)
    """`with vkml.autograd.detect_anomaly(): ...` finds the operator that gives a NaN gradient.

    Both the forward and the backward pass go into the block; see `set_detect_anomaly`.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
