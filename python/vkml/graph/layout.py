"""Where boxes go: in layers, sources above users, in the manner of Sugiyama et al. (1981).

A box's layer is one below its lowest source. Within a layer boxes are ordered by the mean place of
their neighbours, first downwards and then upwards, which leaves few crossings. An input is moved
down to just above its first user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LINE_HEIGHT, CHARACTER_WIDTH = 14, 6.6
PADDING, GAP, LAYER_GAP = 8, 24, 44


class Box(NamedTuple):
    """What is drawn for a node."""

    lines: list[str]
    sources: list[int]
    color: str
    is_root: bool


class Placed(NamedTuple):
    """A box with its place: the upper left corner, and its extents."""

    box: Box
    x: float
    y: float
    width: float
    height: float


def place(boxes: Sequence[Box]) -> list[Placed]:
    """Gives every box a place; the order is that of the boxes. Sources come before their users."""
    users: list[list[int]] = [[] for _ in boxes]
    for number, box in enumerate(boxes):
        for source in box.sources:
            users[source].append(number)
    layers = _layers(boxes, users)
    for neighbours, order in (
        ([box.sources for box in boxes], range(1, len(layers))),
        (users, range(len(layers) - 2, -1, -1)),
    ):
        for depth in order:
            _sort_by_neighbours(layers, depth, neighbours)
    widths = [max(map(len, box.lines)) * CHARACTER_WIDTH + 2 * PADDING for box in boxes]
    heights = [len(box.lines) * LINE_HEIGHT + 2 * PADDING for box in boxes]
    total = max((_length(layer, widths) for layer in layers), default=0.0)
    found: dict[int, Placed] = {}
    y = 0.0
    for layer in layers:
        x = (total - _length(layer, widths)) / 2
        for number in layer:
            found[number] = Placed(boxes[number], x, y, widths[number], heights[number])
            x += widths[number] + GAP
        y += max(heights[number] for number in layer) + LAYER_GAP
    return [found[number] for number in range(len(boxes))]


def _length(layer: list[int], widths: Sequence[float]) -> float:
    return sum(widths[number] for number in layer) + GAP * (len(layer) - 1)


def _layers(boxes: Sequence[Box], users: Sequence[list[int]]) -> list[list[int]]:
    depth = [0] * len(boxes)
    for number, box in enumerate(boxes):
        depth[number] = 1 + max((depth[source] for source in box.sources), default=-1)
    for number in range(len(boxes) - 1, -1, -1):
        if not boxes[number].sources and users[number]:
            depth[number] = min(depth[user] for user in users[number]) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number, level in enumerate(depth):
        layers[level].append(number)
    return layers


def _sort_by_neighbours(
    layers: list[list[int]], depth: int, neighbours: Sequence[Sequence[int]]
) -> None:
    """Orders a layer by the mean relative place of each box's neighbours in all layers."""
    position = {
        number: (at + 0.5) / len(layer) for layer in layers for at, number in enumerate(layer)
    }

    def mean(number: int) -> float:
        near = neighbours[number]
        return sum(position[n] for n in near) / len(near) if near else position[number]

    layers[depth].sort(key=mean)
