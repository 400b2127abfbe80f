"""What the training program can be told: its command line and the settings of each model.

Loads nothing but Python's own modules, so that `--help` answers before anything is installed:

    python examples/python/training_options.py --help
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DEFAULTS = {
    "mlp": {"epochs": 10, "batch": 128, "seed": 0},
    "cnn": {"epochs": 5, "batch": 128, "seed": 0},
}


class UsageError(Exception):
    """Something the user can put right; shown without a traceback."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line. Settings that a checkpoint may give too are None by default."""
    parser = argparse.ArgumentParser("run.sh", description="Trains a classifier on Fashion-MNIST.")
    add = parser.add_argument
    positive = _integer_from(1)
    add("--model", choices=sorted(DEFAULTS), help="the network (default: mlp)")
    add("--epochs", type=positive, help=f"passes over the data ({_defaults('epochs')})")
    add("--batch", type=positive, help=f"images in a step ({_defaults('batch')})")
    add("--seed", type=_integer_from(0), help=f"of all randomness ({_defaults('seed')})")
    add(
        "--device",
        default="auto",
        help="cpu, vulkan, vulkan:1, or auto: a real GPU if there is one, else cpu (default: auto)",
    )
    add(
        "--data",
        type=Path,
        help="folder with the IDX files (default: that of Debian's dataset-fashion-mnist)",
    )
    add("--out", type=Path, default=Path("out"), help="folder for results (default: out)")
    add("--resume", action="store_true", help="continue the run in --out")
    add("--eager", action="store_true", help="run each operator at once, to find faults")
    return parser.parse_args(arguments)


def _defaults(name: str) -> str:
    values = (f"{settings[name]} for {model}" for model, settings in DEFAULTS.items())
    return f"default: {', '.join(values)}"


def _integer_from(least: int) -> Any:
    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return integer


if __name__ == "__main__":
    parse_arguments()
