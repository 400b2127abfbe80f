"""Trains the classifiers of `scripts/run.sh` with default settings, and checks how good they are.

The training program runs as users start it, once for each model on each device. Its accuracy on
the test images has to reach the floor of its model, and that of two devices may differ by half a
point.

    PYTHONPATH=build/release/python python benchmarks/train_to_accuracy.py
    ... --device cpu --device vulkan:1   these devices; by default the CPU and every real GPU
    ... --model mlp                      this model alone

The table goes to benchmarks/results/training-<processor>-<date>.md as well.
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import vkml
from run import HERE, commit, processor

PROGRAM = HERE.parent / "examples" / "python" / "train_fashion_mnist.py"
# Percent of the test images.
FLOORS = {"mlp": 88.0, "cnn": 90.5}
MOST_BETWEEN_DEVICES = 0.5


@dataclass
class Run:
    """A model that was trained."""

    model: str
    device: str
    accuracy: float
    seconds: float


def train(model: str, device: str) -> Run:
    """Runs the program; its settings are the defaults."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        output = subprocess.run(
            [sys.executable, PROGRAM, "--model", model, "--device", device, "--out", folder],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    seconds = time.perf_counter() - begin
    accuracy = re.findall(r"^test accuracy: ([0-9.]+) %$", output, re.MULTILINE)
    return Run(model, device, float(accuracy[-1]), seconds)


def shortfalls(runs: list[Run]) -> list[str]:
    """What is not as good as it has to be."""
    found = [
        f"{run.model} on {run.device}: {run.accuracy} %, below {FLOORS[run.model]} %"
        for run in runs
        if run.accuracy < FLOORS[run.model]
    ]
    for model in FLOORS:
        reached = [run.accuracy for run in runs if run.model == model]
        # Figures of one decimal.
        if reached and round(max(reached) - min(reached), 1) > MOST_BETWEEN_DEVICES:
            found.append(f"{model}: devices differ by {max(reached) - min(reached):.1f} points")
    return found


def name_of(device: str) -> str:
    """What the device is called."""
    names = {info.device: info.name for info in vkml.devices()}
    return processor() if device == "cpu" else names[vkml.device(device)]


def report(runs: list[Run], note: str) -> str:
    """The table, with what it was measured on."""
    lines = [
        f"# Training to accuracy on {processor()}, {datetime.date.today()}",
        "",
        "Fashion-MNIST by `scripts/run.sh` with default settings: percent of the 10,000 test",
        "images, seconds of the whole program. Rows have to reach the floor, those of one model to",
        f"lie within {MOST_BETWEEN_DEVICES} points.",
        "",
        f"vkML {vkml.__version__}, commit {commit()}, {os.cpu_count()} processors, "
        f"{platform.platform()}.",
        *([note] if note else []),
        "",
        "| model | device | test accuracy | floor | time |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {run.model} | {name_of(run.device)} ({run.device}) | {run.accuracy:.1f} % | "
        f"{FLOORS[run.model]:.1f} % | {run.seconds:.0f} s |"
        for run in runs
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    real = [str(info.device) for info in vkml.devices() if not info.is_software]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", action="append", help=f"default: {', '.join(real)}")
    parser.add_argument("--model", action="append", choices=sorted(FLOORS), help="default: all")
    parser.add_argument("--note", default="", help="a sentence for the report")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results")
    options = parser.parse_args()
    runs = [
        train(model, device)
        for model in options.model or FLOORS
        for device in options.device or real
    ]
    text = report(runs, options.note)
    print(text)
    name = re.sub(r"[^a-z0-9]+", "-", processor().lower()).strip("-")
    path = options.output / f"training-{name}-{datetime.date.today()}.md"
    path.write_text(text)
    missing = shortfalls(runs)
    if missing:
        sys.exit("train_to_accuracy: " + "; ".join(missing))


if __name__ == "__main__":
    main()
