"""A drawing: the description of a graph and its plan, as DOT and as SVG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import vkml
from vkml import Tensor, _vkml
from vkml.graph.layout import Box, place
from vkml.graph.svg import svg_of

COMPUTED, PENDING, NUMBER = "#d5e8d4", "#ffffff", "#eeeeee"


class Drawing:
    """A picture of the graph below some tensors.

    A box is a node: operator, dtype and shape. Filled boxes are computed already, frames hold what
    one kernel of the plan computes, and say which memory it writes. Nodes in no frame are inputs,
    numbers, views, or are computed on the way by several kernels.

    Attributes:
        device: Where the graph is computed.
        is_cached: Whether the plan is in the cache: realize() would compile nothing.
        arena_bytes: Bytes that the plan's intermediate results share.
        nodes: One dictionary for each node, sources before users: `op`, `dtype`, `shape`, `sources`
            (positions), `is_computed`, `is_view`, `is_number`, `is_root`, `is_kept`,
            `requires_grad` and `kernel` (a position, or -1).
        kernels: One dictionary for each kernel in order: `kind`, `reads` and `writes` (positions
            of buffers), and the number of `instructions` at each element.
        buffers: One dictionary for each buffer: `kind` (input, result, temporary), `bytes`,
            `offset` in the arena, and the input that a result `overwrites`, or -1.
    """

    def __init__(self, description: dict[str, Any]) -> None:
        self.device: str = description["device"]
        self.is_cached: bool = description["is_cached"]
        self.arena_bytes: int = description["arena_bytes"]
        self.nodes: list[dict[str, Any]] = description["nodes"]
        self.kernels: list[dict[str, Any]] = description["kernels"]
        self.buffers: list[dict[str, Any]] = description["buffers"]
        self._is_pending: bool = description["is_pending"]

    @property
    def title(self) -> str:
        """One line: the device, the plan's size, and whether it is in the cache."""
        if not self._is_pending:
            return f"{self.device}: computed"
        cache = "in the cache" if self.is_cached else "not in the cache"
        return (
            f"{self.device}: {len(self.kernels)} kernels, arena {self.arena_bytes} bytes, "
            f"plan {cache}"
        )

    @property
    def dot(self) -> str:
        """The graph in Graphviz's language."""
        lines = [
            "digraph vkml {",
            f"  label={_quoted(self.title)}; labelloc=t;",
            '  node [shape=box, style="filled,rounded", fontname="sans-serif"];',
        ]
        for kernel in range(len(self.kernels)):
            lines.append(f"  subgraph cluster_{kernel} {{")
            lines.append(f"    label={_quoted(self.kernel_label(kernel))}; color=gray;")
            lines += [f"    n{n}" + ";" for n in self.members(kernel)]
            lines.append("  }")
        for number, node in enumerate(self.nodes):
            label = "\\n".join(_escaped(line) for line in self.node_lines(number))
            width = 2 if node["is_root"] else 1
            lines.append(
                f'  n{number} [label="{label}", fillcolor="{fill(node)}", penwidth={width}];'
            )
        for number, node in enumerate(self.nodes):
            lines += [f"  n{source} -> n{number};" for source in node["sources"]]
        return "\n".join([*lines, "}"]) + "\n"

    @property
    def svg(self) -> str:
        """The graph as an SVG document. Needs no other program."""
        boxes = [
            Box(self.node_lines(number), node["sources"], fill(node), node["is_root"])
            for number, node in enumerate(self.nodes)
        ]
        frames = [
            (self.kernel_label(kernel), self.members(kernel)) for kernel in range(len(self.kernels))
        ]
        return svg_of(self.title, place(boxes), [f for f in frames if f[1]])

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, SVG or DOT by its ending.

        Raises:
            ArgumentError: The ending is neither `.svg` nor `.dot`.
        """
        ending = os.path.splitext(os.fspath(path))[1]
        if ending not in (".svg", ".dot"):
            raise vkml.ArgumentError(
                f"[draw] cannot write {os.fspath(path)!r}. Pass a name that ends in .svg or .dot."
            )
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if ending == ".svg" else self.dot)

    def members(self, kernel: int) -> list[int]:
        """The nodes that one kernel computes."""
        return [n for n, node in enumerate(self.nodes) if node["kernel"] == kernel]

    def node_lines(self, number: int) -> list[str]:
        """What a node's box says."""
        node = self.nodes[number]
        lines = [node["op"], f"{str(node['dtype']).removeprefix('vkml.')} {_shape(node['shape'])}"]
        marks = [
            word
            for word, is_set in {
                "computed": node["is_computed"] and bool(node["sources"]),
                "kept": node["is_kept"] and not node["is_computed"],
                "view": node["is_view"],
                "gradient": node["requires_grad"],
            }.items()
            if is_set
        ]
        return [*lines, ", ".join(marks)] if marks else lines

    def kernel_label(self, kernel: int) -> str:
        """A kernel's number and kind, and the memory that it writes."""
        places = []
        for position in self.kernels[kernel]["writes"]:
            buffer = self.buffers[position]
            if buffer["kind"] == "temporary":
                end = buffer["offset"] + buffer["bytes"]
                places.append(f"arena {buffer['offset']} to {end}")
            else:
                where = "in place" if buffer["overwrites"] >= 0 else "a result"
                places.append(f"{where}, {buffer['bytes']} bytes")
        return f"kernel {kernel}: {self.kernels[kernel]['kind']}, writes {'; '.join(places)}"

    def __repr__(self) -> str:
        return f"Drawing({len(self.nodes)} nodes; {self.title})"


def draw(tensors: Tensor | Sequence[Tensor]) -> Drawing:
    """Draws the graph below tensors, and the plan that realize() would run. Computes nothing.

    Args:
        tensors: One tensor, or several of one device.
    """
    return Drawing(_vkml._describe([tensors] if isinstance(tensors, Tensor) else list(tensors)))


def fill(node: dict[str, Any]) -> str:
    """The colour of a node's box."""
    if node["is_number"]:
        return NUMBER
    return COMPUTED if node["is_computed"] else PENDING


def _shape(extents: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, extents)) + ")"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
