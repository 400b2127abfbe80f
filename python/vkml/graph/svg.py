"""Boxes, arrows and frames as an SVG document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from vkml.graph.layout import CHARACTER_WIDTH, LINE_HEIGHT, PADDING, Placed

_MARGIN = 24
_FRAMES = ("#6c8ebf", "#b85450", "#d79b00", "#9673a6", "#82b366", "#666666")
_STYLE = (
    "text{font:11px monospace;text-anchor:middle}"
    ".edge{stroke:#555;fill:none;marker-end:url(#arrow)}"
)
_ARROW = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>'
)


def svg_of(
    title: str, placed: Sequence[Placed], frames: Sequence[tuple[str, Sequence[int]]]
) -> str:
    """The document. A frame is a label, and the numbers of the boxes that carry its colour."""
    legend = len(frames) * LINE_HEIGHT + 2 * LINE_HEIGHT
    width = max((p.x + p.width for p in placed), default=0.0)
    longest = max([len(title), *(len(label) for label, _ in frames)])
    width = max(width, longest * CHARACTER_WIDTH) + 2 * _MARGIN
    height = max((p.y + p.height for p in placed), default=0.0) + legend + 2 * _MARGIN
    color_of = {
        number: _FRAMES[index % len(_FRAMES)]
        for index, (_, members) in enumerate(frames)
        for number in members
    }
    body = [
        *_legend(title, [label for label, _ in frames]),
        f'<g transform="translate({_MARGIN} {_MARGIN + legend})">',
        *_edges(placed),
        *(
            line
            for number, each in enumerate(placed)
            for line in _box(each, color_of.get(number, "#999"), number in color_of)
        ),
        "</g>",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<style>{_STYLE}</style><defs>{_ARROW}</defs>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _legend(title: str, labels: Sequence[str]) -> Iterator[str]:
    y = _MARGIN
    yield f'<text x="{_MARGIN}" y="{y}" style="text-anchor:start">{escape(title)}</text>'
    for index, label in enumerate(labels):
        y += LINE_HEIGHT
        color = _FRAMES[index % len(_FRAMES)]
        yield (
            f'<text x="{_MARGIN}" y="{y}" fill="{color}" style="text-anchor:start">'
            f"{escape(label)}</text>"
        )


def _edges(placed: Sequence[Placed]) -> Iterator[str]:
    for user in placed:
        for number in user.box.sources:
            source = placed[number]
            x1, y1 = source.x + source.width / 2, source.y + source.height
            x2, y2 = user.x + user.width / 2, user.y
            bend = (y2 - y1) / 2
            yield (
                f'<path class="edge" d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} '
                f'{x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"/>'
            )


def _box(placed: Placed, stroke: str, is_in_kernel: bool) -> Iterator[str]:
    width = 3 if placed.box.is_root else 2 if is_in_kernel else 1
    yield (
        f'<rect x="{placed.x:.1f}" y="{placed.y:.1f}" width="{placed.width:.1f}" '
        f'height="{placed.height:.1f}" rx="5" fill="{placed.box.color}" stroke="{stroke}" '
        f'stroke-width="{width}"/>'
    )
    for row, line in enumerate(placed.box.lines):
        y = placed.y + PADDING + (row + 0.8) * LINE_HEIGHT
        yield f'<text x="{placed.x + placed.width / 2:.1f}" y="{y:.1f}">{escape(line)}</text>'
