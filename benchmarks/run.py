"""Times vkML against PyTorch and prints the ratios.

Each framework runs in its own process with the same number of threads; samples of at least 20 ms
are taken in turns, so that what disturbs the machine disturbs both. A row shows medians, the spread
(half the distance between the quartiles, relative to the median) and the ratio of speeds: 2.00 is
twice as fast as PyTorch eager. Beside it stand the kernels of a call and, on Vulkan, the figure
that follows from their time on the device alone, taken by each framework's own profiler after the
samples.

    PYTHONPATH=build/release/python python benchmarks/run.py --device cpu
    ... --only matmul --only softmax      rows whose name contains one of these
    ... --scaling                         time against size, over four decades, instead
    ... --quick                           small sizes and three samples: a look, not a measurement
    ... --cpp build/benchmarks/bench_cpp  rows from C++, too

The report goes to benchmarks/results/<device>-<date>.md as well; compare.py compares two of them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from frameworks import FRAMEWORKS
from workloads import TABLES, Workload

HERE = pathlib.Path(__file__).parent
DEVICE_NOTE = (
    'The columns "device" hold what kernels alone took, each by itself: by timestamps (vkML\'s',
    "profiler), by CUPTI (PyTorch's). Kernels that would overlap are counted one after the other.",
)
SAMPLES = 7
QUICK_SAMPLES = 3


class Worker:
    """A framework in its own process."""

    def __init__(self, framework: str, device: str, sizes: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), framework, device, sizes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            text=True,
        )
        self.about: str = self._answer()["ready"]

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended with status {self.process.wait()}: see above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def spread(samples: list[float]) -> float:
    """Half the distance between the quartiles, relative to the median."""
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / 2 / middle


@dataclass
class Result:
    """What one framework took for a workload: seconds, or why it failed."""

    samples: list[float] = field(default_factory=list)
    error: str = ""
    kernels: dict[str, float] = field(default_factory=dict)  # count, seconds; empty: not known

    @property
    def median(self) -> float | None:
        """Of the samples; None where there are none."""
        return statistics.median(self.samples) if self.samples and not self.error else None


def measure(workload: Workload, workers: dict[str, Worker], samples: int) -> dict[str, Result]:
    """Results by framework; of those that have nothing of the kind, empty ones."""
    results = {name: Result() for name in workers}
    taking_part = [name for name in workers if workload.has_peers or name == "vkml"]

    def ask(name: str, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {} if results[name].error else workers[name].ask(**request)
        results[name].error = answer.get("error", results[name].error)
        return answer

    for name in taking_part:
        ask(name, prepare=workload.name)
    for _ in range(samples):
        for name in taking_part:
            answer = ask(name, sample=True)
            results[name].samples += [answer["seconds"]] if "seconds" in answer else []
    for name in taking_part if workload.has_kernels else []:
        results[name].kernels = ask(name, kernels=True)
    return results


def figure(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def ratio(peer: float | None, ours: float | None) -> str:
    """How much faster we are; "-" where one is not known."""
    return f"{peer / ours:.2f}" if peer and ours else "-"


def columns(peers: list[str], with_device: bool) -> list[str]:
    """The titles of a row's cells."""
    titles = ["workload", "unit", "vkML", *peers, *(f"x {peer}" for peer in peers)]
    titles += ["kernels", *(f"of {peer}" for peer in peers)]
    if with_device:
        titles += ["vkML, device", *(f"{peer}, device" for peer in peers)]
        titles += [f"x {peer}, device" for peer in peers]
    return titles


def row(
    workload: Workload, results: dict[str, Result], peers: list[str], with_device: bool
) -> list[str]:
    """The cells of one row: vkML, then each peer with the ratio of speeds."""
    everyone = ["vkml", *peers]
    cells = [workload.name, workload.unit]
    for name in everyone:
        median = results[name].median
        if median is None:
            cells.append("failed" if results[name].error else "-")
        else:
            share = 100 * spread(results[name].samples)
            cells.append(f"{figure(workload.value(median))} ±{share:.0f} %")
    cells += [ratio(results[name].median, results["vkml"].median) for name in peers]
    counts = [results[name].kernels.get("count") for name in everyone]
    cells += ["-" if count is None else f"{count:g}" for count in counts]
    if with_device:
        taken = {name: results[name].kernels.get("seconds") for name in everyone}
        values = {name: seconds and workload.value(seconds) for name, seconds in taken.items()}
        cells += [figure(value) if value else "-" for value in values.values()]
        cells += [ratio(taken[name], taken["vkml"]) for name in peers]
    return cells


def import_row(peers: list[str], samples: int) -> list[str]:
    """How long a fresh interpreter takes to import each framework."""

    def seconds(module: str) -> float:
        taken = []
        for _ in range(samples):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
            taken.append(time.perf_counter() - start)
        return statistics.median(taken)

    empty = seconds("sys")
    taken = {name: max(seconds(name) - empty, 1e-4) for name in ["vkml", *peers]}
    ratios = [ratio(taken[name], taken["vkml"]) for name in peers]
    return ["import", "s", *(figure(taken[name]) for name in ["vkml", *peers]), *ratios]


# Names in bench_cpp, with what the report calls them: figures in seconds, their unit.
CPP_ROWS = {
    "record": ("C++: record one add, nothing run", "s/node", "ns"),
    "realize_step_cached": (
        "C++: planned step of 200 nodes, realize() until submitted",
        "real_time",
        "us",
    ),
    "step_replayed": ("C++: recorded step of 200 nodes, call until submitted", "real_time", "us"),
}
SECONDS_OF = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def cpp_rows(program: pathlib.Path, device: str, samples: int) -> list[list[str]]:
    """What recording and running cost from C++, as bench_cpp measures it."""
    done = subprocess.run(
        [
            *(program, f"--benchmark_filter=^({'|'.join(CPP_ROWS)})/{device}(:0)?(/|$)"),
            *("--benchmark_format=json", f"--benchmark_repetitions={samples}"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    taken: dict[str, list[float]] = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        name = run["name"].split("/")[0]
        _, key, _ = CPP_ROWS[name]
        scale = SECONDS_OF[run["time_unit"]] if key == "real_time" else 1.0
        taken.setdefault(name, []).append(run[key] * scale)
    rows = []
    for name, seconds in taken.items():
        title, _, unit = CPP_ROWS[name]
        value = statistics.median(seconds) / SECONDS_OF[unit]
        rows.append([title, unit, f"{figure(value)} ±{100 * spread(seconds):.0f} %"])
    return rows


def processor() -> str:
    """The processor's name."""
    info = pathlib.Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.is_file() else None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is measured, marked when the tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def device_name(device: str) -> tuple[str, str]:
    """(the device's name, which sizes it takes), asked in a process of its own."""
    script = (
        "import json, vkml\n"
        f"found = [d for d in vkml.devices() if str(d.device).split(':')[0] == {device!r}]\n"
        "print(json.dumps([found[0].name, found[0].is_software] if found else None))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout) if done.returncode == 0 else None
    if found is None:
        raise SystemExit(f"no device {device!r} for vkML. {done.stderr.strip()}")
    name, software = found
    if device == "cpu":
        return processor(), "cpu"
    return name, "software" if software else "gpu"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Time vkML against PyTorch.")
    parser.add_argument("--device", choices=["cpu", "vulkan"], default="cpu")
    parser.add_argument("--only", action="append", default=[], help="part of a row's name")
    parser.add_argument("--scaling", action="store_true", help="time against size, instead")
    parser.add_argument("--quick", action="store_true", help="small sizes, three samples")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--samples", type=int, help=f"for each row (default {SAMPLES})")
    parser.add_argument("--cpp", type=pathlib.Path, help="bench_cpp, for its rows")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results")
    return parser.parse_args()


def main() -> None:
    """Measure, print as rows come in, write the report."""
    options = arguments()
    samples = options.samples or (QUICK_SAMPLES if options.quick else SAMPLES)
    name, sizes = device_name(options.device)
    if options.scaling:
        sizes = "scaling"
    elif options.quick and sizes != "software":
        sizes = "quick"
    peers = [peer for peer in FRAMEWORKS if peer != "vkml"]
    workers = {
        framework: Worker(framework, options.device, sizes, options.threads)
        for framework in FRAMEWORKS
    }

    with_device = options.device == "vulkan"
    titles = columns(peers, with_device)
    date = datetime.date.today().isoformat()
    lines = [
        f"# {name}, {date}",
        "",
        f"{processor()}, {options.threads} threads, {platform.platform()}, commit {commit()}.",
        *(f"- {worker.about}" for worker in workers.values()),
        "",
        f"Medians of {samples} samples of at least 20 ms taken in turns, ± half the distance",
        "between the quartiles. Ratio of speeds to the peer in this run; above 1 vkML is faster.",
        *(DEVICE_NOTE if with_device else ()),
        "",
        "| " + " | ".join(titles) + " |",
        "|" + "---|" * len(titles),
    ]
    print("\n".join(lines), flush=True)

    def add(cells: list[str]) -> None:
        cells += ["-"] * (len(titles) - len(cells))
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)

    failures = []
    wanted = [text.lower() for text in options.only]
    for workload in TABLES[sizes]():
        if wanted and not any(text in workload.name.lower() for text in wanted):
            continue
        results = measure(workload, workers, samples)
        add(row(workload, results, peers, with_device))
        failures += [
            f"{framework}, {workload.name}: {result.error}"
            for framework, result in results.items()
            if result.error
        ]
    for worker in workers.values():
        worker.close()
    if options.cpp:
        for cells in cpp_rows(options.cpp, options.device, samples):
            if not wanted or any(text in cells[0].lower() for text in wanted):
                add(cells)
    if not wanted and not options.scaling:
        add(import_row(peers, samples))

    if failures:
        print("\n".join(["", *failures]), file=sys.stderr)
    if not options.quick and not wanted:
        options.output.mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        kind = "scaling-" if options.scaling else ""
        file = options.output / f"{kind}{slug}-{date}.md"
        file.write_text("\n".join(lines) + "\n")
        print(f"\nwritten to {file}")
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
