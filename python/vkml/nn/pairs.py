"""Settings for two axes, given as one number or as a pair."""

from __future__ import annotations

IntOrPair = int | tuple[int, int]


def as_pair(value: IntOrPair) -> tuple[int, int]:
    """A setting for both axes: (n, n) from n, and a pair as it is."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def as_single(value: int | tuple[int]) -> int:
    """A setting for one axis, from a number or a tuple of one."""
    return value if isinstance(value, int) else value[0]
