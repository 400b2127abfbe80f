"""How a function is recorded: without computing, and with draws that can be made again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from vkml import _vkml

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def recording_only() -> Iterator[None]:
    """Inside, this thread's operators record, and nothing is computed before it is observed."""
    before = _vkml._set_recording_only(True)
    try:
        yield
    finally:
        _vkml._set_recording_only(before)


@contextmanager
def noted_draws() -> Iterator[_vkml._DrawTape]:
    """Inside, this thread's random draws are noted on the tape that is given."""
    tape = _vkml._DrawTape()
    tape.begin(replay=False)
    try:
        yield tape
    finally:
        _vkml._end_draws()


@contextmanager
def repeated_draws(tape: _vkml._DrawTape) -> Iterator[None]:
    """Inside, this thread draws what is on the tape."""
    tape.begin(replay=True)
    try:
        yield
    finally:
        _vkml._end_draws()
