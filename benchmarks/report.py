"""Reads the tables that run.py writes."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """One table: its heading, and the cells of each workload by the titles of their columns."""

    heading: str
    rows: dict[str, dict[str, str]]

    def ratios(self, peer: str) -> dict[str, float]:
        """Speed as a multiple of the peer's, of the workloads that both could do."""
        return self._numbers(f"x {peer}")

    def figures(self, framework: str) -> dict[str, float]:
        """Medians in the units of the rows, of the workloads that the framework could do."""
        return self._numbers(framework)

    def _numbers(self, title: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for workload, cells in self.rows.items():
            text = cells.get(title, "-").split(" ±")[0]
            if re.fullmatch(r"[0-9.e+-]*[0-9][0-9.e+-]*", text):
                found[workload] = float(text)
        return found


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read(path: pathlib.Path) -> Report:
    """The report in a file.

    Raises:
        SystemExit: The file holds no table.
    """
    lines = path.read_text().splitlines()
    table = [cells_of(line) for line in lines if line.startswith("|")]
    if len(table) < 2 or "workload" not in table[0]:
        raise SystemExit(f"{path} holds no table of run.py")
    titles = table[0]
    rows = {cells[0]: dict(zip(titles[1:], cells[1:], strict=True)) for cells in table[2:]}
    return Report(lines[0].lstrip("# "), rows)


def newest(folder: pathlib.Path, pattern: str) -> pathlib.Path | None:
    """The latest of the reports whose names match; dates end their names."""
    found = sorted(folder.glob(pattern), key=lambda path: path.stem[-len("2026-01-01") :])
    return found[-1] if found else None
