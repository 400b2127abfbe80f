"""Draws the plots of docs/performance.md from the newest tables of results/.

    python benchmarks/plots.py

One bar chart for each device: speed as a multiple of PyTorch's in the same run; and, where
`run.py --scaling` has run, time against size.
"""

from __future__ import annotations

import pathlib
import re

import matplotlib as mpl
import matplotlib.pyplot as plt

import report

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
IMAGES = HERE.parent / "docs" / "images"
PEER = "torch"
FASTER, SLOWER = "#2a7f62", "#b5532b"
DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def devices() -> list[str]:
    """Names of the files of results, without their dates."""
    names = {DATE.sub("", path.stem) for path in RESULTS.glob("*.md")}
    return sorted(name for name in names if not name.startswith(("training-", "scaling-")))


def save(figure: plt.Figure, name: str) -> None:
    """Writes an SVG that is the same each time it is drawn."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def draw_ratios(name: str, table: report.Report) -> None:
    """A bar for each row, on a logarithmic axis: right of 1, vkML is faster."""
    ratios = table.ratios(PEER)
    ratios.pop("import", None)  # off every scale
    figure, axes = plt.subplots(figsize=(8, 0.22 * len(ratios) + 1))
    values = list(ratios.values())
    colours = [FASTER if value >= 1 else SLOWER for value in values]
    # Bars begin at 1: their length is how much faster or slower.
    axes.barh(range(len(values)), [value - 1 for value in values], left=1, color=colours)
    axes.set_yticks(range(len(values)), list(ratios), fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(f"{table.heading}: speed relative to PyTorch eager", fontsize=9)
    save(figure, f"ratios-{name}")


def families(figures: dict[str, float]) -> dict[str, list[tuple[int, float]]]:
    """Rows that differ in their last number alone: (size, microseconds) of each."""
    found: dict[str, list[tuple[int, float]]] = {}
    for workload, value in figures.items():
        start, _, size = workload.rpartition(" ")
        found.setdefault(start, []).append((int(size), value))
    return found


def draw_scaling(name: str, table: report.Report) -> None:
    """A panel for each family: time against size, vkML and its peer."""
    ours, theirs = families(table.figures("vkML")), families(table.figures(PEER))
    figure, panels = plt.subplots(1, len(ours), figsize=(3 * len(ours), 2.8))
    for axes, (family, points) in zip(panels, ours.items(), strict=True):
        axes.loglog(*zip(*points, strict=True), marker="o", color=FASTER, label="vkML")
        if family in theirs:
            axes.loglog(
                *zip(*theirs[family], strict=True), marker="s", color="grey", label="PyTorch"
            )
        work, _, unit = family.rpartition(" ")
        axes.set_title(work.rstrip(","), fontsize=9)
        axes.set_xlabel(unit, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("microseconds", fontsize=8)
    panels[0].legend(fontsize=7)
    figure.suptitle(table.heading, fontsize=9, y=1.05)
    save(figure, f"scaling-{name}")


def main() -> None:
    """Draws all of them."""
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "vkml", "svg.fonttype": "none"}
    for name in devices():
        found = report.newest(RESULTS, f"{name}-20*.md")
        if found is not None:
            draw_ratios(name, report.read(found))
        found = report.newest(RESULTS, f"scaling-{name}-20*.md")
        if found is not None:
            draw_scaling(name, report.read(found))


if __name__ == "__main__":
    main()
