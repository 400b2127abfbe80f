"""Named tuples that operators return."""

from __future__ import annotations

from collections import namedtuple
from functools import cache


@cache
def ranked(operator: str) -> type:
    """The type of (values, indices) that an operator returns."""
    return namedtuple(f"{operator}_result", ["values", "indices"])


@cache
def histogram() -> type:
    """The type of (hist, bin_edges)."""
    return namedtuple("histogram_result", ["hist", "bin_edges"])
