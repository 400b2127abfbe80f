"""A line search that ends where the strong Wolfe conditions hold.

Bracketing and zoom of Nocedal and Wright (Numerical Optimization, 2006, algorithms 3.5 and 3.6),
with cubic interpolation and the safeguards of Schmidt's minFunc (2005), which PyTorch follows too.
Bound: evaluations of the function, one to two as a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from vkml import Tensor

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_EVALUATIONS = 25


class Point(NamedTuple):
    """The function along the line: where, its value, its gradient, and the slope along the line."""

    step: float
    value: float
    gradient: Tensor
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    largest_move: float,
    tolerance: float,
) -> tuple[Point, int]:
    """Finds a step that lowers the function and flattens its slope enough.

    Args:
        evaluate: The function at a step.
        start: The function at step 0.
        step: The first step that is tried.
        largest_move: The largest element of the direction: intervals are measured by it.
        tolerance: The width below which an interval is not divided any more.

    Returns:
        The point, and how often the function was evaluated.
    """
    search = _Search(evaluate, start, step)
    if not search.bracketed():
        search.zoom(largest_move, tolerance)
    return search.low, search.evaluations


class _Search:
    """The interval so far: `low` is its better end."""

    def __init__(self, evaluate: Callable[[float], Point], start: Point, step: float) -> None:
        self._evaluate = evaluate
        self._start = start
        self.evaluations = 0
        self._rounds = 0
        self.low = self.high = self._at(step)

    def _at(self, step: float) -> Point:
        self.evaluations += 1
        return self._evaluate(step)

    def _is_too_high(self, point: Point) -> bool:
        start = self._start
        return point.value > start.value + _SUFFICIENT_DECREASE * point.step * start.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * self._start.slope

    def bracketed(self) -> bool:
        """Lengthens the step until an interval holds a good point; True if its end is one."""
        before, point = self._start, self.low
        while self._rounds < _MAX_EVALUATIONS:
            if self._is_too_high(point) or (self._rounds > 1 and point.value >= before.value):
                break
            if self._is_flat(point):
                self.low = point
                return True
            if point.slope >= 0:
                break
            shortest = point.step + 0.01 * (point.step - before.step)
            step = _minimum(before, point, (shortest, point.step * 10))
            before, point = point, self._at(step)
            self._rounds += 1
        else:
            before = self._start
        self._set_interval(before, point)
        return False

    def _set_interval(self, one: Point, other: Point) -> None:
        self.low, self.high = (one, other) if one.value <= other.value else (other, one)

    def zoom(self, largest_move: float, tolerance: float) -> None:
        """Narrows the interval around a good point, which becomes `low`."""
        stuck = False
        while self._rounds < _MAX_EVALUATIONS:
            left, right = sorted((self.low.step, self.high.step))
            if (right - left) * largest_move < tolerance:
                return
            step = _minimum(self.low, self.high, (left, right))
            margin = 0.1 * (right - left)
            # A guess near an end is taken once; the next time it is moved inside.
            if min(right - step, step - left) >= margin:
                stuck = False
            elif stuck or step >= right or step <= left:
                near_right = abs(step - right) < abs(step - left)
                step = right - margin if near_right else left + margin
                stuck = False
            else:
                stuck = True
            point = self._at(step)
            self._rounds += 1
            if self._is_too_high(point) or point.value >= self.low.value:
                self._set_interval(self.low, point)
                continue
            if self._is_flat(point):
                self.low = point
                return
            if point.slope * (self.high.step - self.low.step) >= 0:
                self.high = self.low
            self.low = point


def _minimum(one: Point, other: Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two values and slopes is least, kept within bounds."""
    left, right = (one, other) if one.step <= other.step else (other, one)
    width = right.step - left.step
    if width == 0:
        return sum(bounds) / 2
    mixed = left.slope + right.slope - 3 * (left.value - right.value) / (left.step - right.step)
    discriminant = mixed * mixed - left.slope * right.slope
    if not discriminant >= 0:
        return sum(bounds) / 2
    root = math.sqrt(discriminant)
    divisor = right.slope - left.slope + 2 * root
    if divisor == 0:
        return sum(bounds) / 2
    step = right.step - width * (right.slope + root - mixed) / divisor
    return min(max(step, bounds[0]), bounds[1])
