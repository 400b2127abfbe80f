"""Guards against lost speed: compares two reports of run.py, and fails where a ratio fell.

Times of different days say little, since machines are noisy and clocks change; ratios to a peer
that was measured in the same run can be compared. Below a factor of 1.3 nothing is called a change.

    python benchmarks/compare.py OLD.md NEW.md
    python benchmarks/compare.py OLD.md NEW.md --peer torch --factor 1.3
"""

from __future__ import annotations

import argparse
import pathlib

import report

FACTOR = 1.3


def changes(old: dict[str, float], new: dict[str, float], factor: float) -> tuple[list[str], bool]:
    """A line for each workload that changed by the factor or is missing; whether any fell."""
    lines = []
    fell = False
    for workload, before in old.items():
        if workload not in new:
            lines.append(f"missing  {workload}: was {before:.2f}")
            fell = True
            continue
        after = new[workload]
        if after * factor <= before:
            lines.append(f"slower   {workload}: {before:.2f} -> {after:.2f}")
            fell = True
        elif before * factor <= after:
            lines.append(f"faster   {workload}: {before:.2f} -> {after:.2f}")
    return lines, fell


def main() -> None:
    """Compare, print, and exit with status 1 where a ratio fell or a row is missing."""
    parser = argparse.ArgumentParser(description="Compare two reports of benchmarks/run.py.")
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--peer", default="torch", help="whose speed is the measure")
    parser.add_argument("--factor", type=float, default=FACTOR, help=f"default {FACTOR}")
    options = parser.parse_args()
    old, new = report.read(options.old), report.read(options.new)
    before = old.ratios(options.peer)
    if not before:
        raise SystemExit(f"{options.old} has no ratios to {options.peer}")
    lines, fell = changes(before, new.ratios(options.peer), options.factor)
    print(f"{old.heading} -> {new.heading}: ratios to {options.peer}, {len(before)} rows")
    print("\n".join(lines) or f"none changed by {options.factor}")
    raise SystemExit(fell)


if __name__ == "__main__":
    main()
