"""Ctrl-C ends the training program cleanly, with status 130 and no traceback, whenever it comes.

To be imported before anything else: from then on, and again at the end, Ctrl-C ends the process at
once. `raising` makes it the exception KeyboardInterrupt, which closes files on its way; `Interrupt`
makes it a flag.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # exit status, as shells report Ctrl-C


def _end_at_once(number: int, frame: FrameType | None) -> None:
    # An exception here could come up inside an import or an exit handler, which print it.
    sys.stdout.flush()
    os._exit(INTERRUPTED)


signal.signal(signal.SIGINT, _end_at_once)


@contextmanager
def raising() -> Iterator[None]:
    """KeyboardInterrupt within a block."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end_at_once)


class Interrupt:
    """Ctrl-C as a flag, so that a step is never cut in two. A second Ctrl-C ends the program."""

    def __init__(self) -> None:
        self.requested = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Listens within a block."""
        before = signal.signal(signal.SIGINT, self._request)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
