"""Times vkML against PyTorch and prints the ratios.

Each framework runs in its own process with the same number of threads; samples of at least 20 ms
are taken in turns, so that what disturbs the machine disturbs both. A row shows medians, the spread
(half the distance between the quartiles, relative to the median) and the ratio of speeds: 2.00 is
twice as fast as PyTorch eager.

    PYTHONPATH=build/release/python python benchmarks/run.py --device cpu
    ... --only matmul --only softmax      rows whose name contains one of these
    ... --quick                           small sizes and three samples: a look, not a measurement

The report goes to benchmarks/results/<device>-<date>.md as well.
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
from typing import Any

from frameworks import FRAMEWORKS
from workloads import SIZES, Workload, workloads

HERE = pathlib.Path(__file__).parent
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


def measure(workload: Workload, workers: dict[str, Worker], samples: int) -> dict[str, Any]:
    """Samples in seconds by framework; a string where it failed."""
    results: dict[str, Any] = {}
    for name, worker in workers.items():
        answer = worker.ask(prepare=workload.name)
        results[name] = answer.get("error", [])
    for _ in range(samples):
        for name, worker in workers.items():
            if isinstance(results[name], str):
                continue
            answer = worker.ask(sample=True)
            if "error" in answer:
                results[name] = answer["error"]
            else:
                results[name].append(answer["seconds"])
    return results


def figure(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def row(workload: Workload, results: dict[str, Any], peers: list[str]) -> list[str]:
    """The cells of one row: vkML, then each peer with the ratio of speeds."""
    cells = [workload.name, workload.unit]
    for name in ["vkml", *peers]:
        samples = results[name]
        if isinstance(samples, str):
            cells.append("failed")
        else:
            median = workload.value(statistics.median(samples))
            cells.append(f"{figure(median)} ±{100 * spread(samples):.0f} %")
    for name in peers:
        if isinstance(results["vkml"], str) or isinstance(results[name], str):
            cells.append("-")
        else:
            ratio = statistics.median(results[name]) / statistics.median(results["vkml"])
            cells.append(f"{ratio:.2f}")
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
    ratios = [f"{taken[name] / taken['vkml']:.2f}" for name in peers]
    return ["import", "s", *(figure(taken[name]) for name in ["vkml", *peers]), *ratios]


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
    parser.add_argument("--quick", action="store_true", help="small sizes, three samples")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--samples", type=int, help=f"for each row (default {SAMPLES})")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results")
    return parser.parse_args()


def main() -> None:
    """Measure, print as rows come in, write the report."""
    options = arguments()
    samples = options.samples or (QUICK_SAMPLES if options.quick else SAMPLES)
    name, sizes = device_name(options.device)
    if options.quick and sizes != "software":
        sizes = "quick"
    peers = [peer for peer in FRAMEWORKS if peer != "vkml"]
    workers = {
        framework: Worker(framework, options.device, sizes, options.threads)
        for framework in FRAMEWORKS
    }

    date = datetime.date.today().isoformat()
    lines = [
        f"# {name}, {date}",
        "",
        f"{processor()}, {options.threads} threads, {platform.platform()}, commit {commit()}.",
        *(f"- {worker.about}" for worker in workers.values()),
        "",
        f"Medians of {samples} samples of at least 20 ms taken in turns, ± half the distance",
        "between the quartiles. Ratio of speeds to the peer in this run; above 1 vkML is faster.",
        "",
        f"| workload | unit | vkML | {' | '.join([*peers, *(f'x {peer}' for peer in peers)])} |",
        "|---|---|" + "---|" * (1 + 2 * len(peers)),
    ]
    print("\n".join(lines), flush=True)

    def add(cells: list[str]) -> None:
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)

    failures = []
    wanted = [text.lower() for text in options.only]
    for workload in workloads(SIZES[sizes]):
        if wanted and not any(text in workload.name.lower() for text in wanted):
            continue
        results = measure(workload, workers, samples)
        add(row(workload, results, peers))
        failures += [
            f"{framework}, {workload.name}: {result}"
            for framework, result in results.items()
            if isinstance(result, str)
        ]
    for worker in workers.values():
        worker.close()
    if not wanted:
        add(import_row(peers, samples))

    if failures:
        print("\n".join(["", *failures]), file=sys.stderr)
    if not options.quick and not wanted:
        options.output.mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        file = options.output / f"{slug}-{date}.md"
        file.write_text("\n".join(lines) + "\n")
        print(f"\nwritten to {file}")
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
