"""Trains a classifier of clothes on Fashion-MNIST, and writes weights, curve and predictions.

    python examples/python/train_fashion_mnist.py --model cnn --out out

The best device is chosen: a real GPU through Vulkan if there is one, else the CPU. Runs with the
same seed on the same device give the same weights, bit by bit, also when they were interrupted by
Ctrl-C and continued with --resume.
"""

from __future__ import annotations

from interrupts import INTERRUPTED, Interrupt, raising

# isort: split
# What follows takes a second to load, in which Ctrl-C may come: hence the order.

import argparse
import importlib.util
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from training_options import DEFAULTS, UsageError, parse_arguments

import vkml
from vkml import nn, optim
from vkml.data import DataLoader, Generator, TensorDataset
from vkml.data.fashion_mnist import CLASSES, FashionMnist, load_fashion_mnist
from vkml.nn import functional as F

# Mean and deviation of the training images, in [0, 1].
PIXEL_MEAN, PIXEL_DEVIATION = 0.2860, 0.3530
LABEL_SMOOTHING = 0.1  # the accuracy then depends little on seed and device
STEPS_PER_READING = 20  # reading the loss waits for the device
EVALUATION_BATCH = 1000
NEEDED_DISK_BYTES = 32 << 20


def make_mlp() -> nn.Module:
    """784 pixels, two hidden layers, 10 classes: 235,146 parameters."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def make_cnn() -> nn.Module:
    """Two convolutions with pooling, one hidden layer, 10 classes: 206,922 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


MODELS = {"mlp": make_mlp, "cnn": make_cnn}
PEAK_LEARNING_RATE = {"mlp": 3e-3, "cnn": 4e-3}


# Settings.


def choose_settings(options: argparse.Namespace, saved: dict[str, Any] | None) -> dict[str, Any]:
    """Model, epochs, batch and seed: as given, as in the run that is resumed, or by default."""
    given = {name: getattr(options, name) for name in ("model", "epochs", "batch", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if saved is None:
        model = given.get("model", "mlp")
        return {"model": model, **DEFAULTS[model], **given}
    for name, value in given.items():
        if value != saved[name]:
            raise UsageError(
                f"--{name} {value} differs from the run to resume, which has {saved[name]}. "
                f"Leave --{name} out, or train anew without --resume."
            )
    return saved


def choose_device(name: str) -> vkml.Device:
    """The device by name; for `auto` a real GPU if there is one, else the CPU."""
    if name != "auto":
        return vkml.device(name)
    for info in vkml.devices():
        if info.device.type == "vulkan" and not info.is_software:
            return info.device
    return vkml.cpu


def prepare_folder(folder: Path) -> None:
    """Makes the folder for results, and finds out now whether it can take them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(NEEDED_DISK_BYTES))
            probe.flush()
    except OSError as error:
        raise UsageError(
            f"cannot write results to {folder}: {error.strerror or error}. Choose another folder "
            f"with --out; {NEEDED_DISK_BYTES >> 20} MiB must be free."
        ) from error


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The run that `Run.save` wrote to a file."""
    if not path.is_file():
        raise UsageError(f"--resume: there is no {path}. Train without --resume first.")
    saved = vkml.load(path)
    parts = {"settings", "model", "optimizer", "schedule", "step", "totals", "history"}
    settings = saved.get("settings") if isinstance(saved, dict) else None
    known = {"model", *DEFAULTS["mlp"]}
    if not isinstance(settings, dict) or not (parts <= saved.keys() and known <= settings.keys()):
        raise not_of_this_program(path)
    return saved


def not_of_this_program(path: Path) -> UsageError:
    """The error of a file that can be read and does not hold a run."""
    return UsageError(
        f"--resume: {path} is not a checkpoint of this program. Train without --resume."
    )


# Training.


@dataclass
class Totals:
    """Sums over the images of an epoch so far."""

    loss: float = 0.0
    correct: float = 0.0
    images: int = 0

    @property
    def mean_loss(self) -> float:
        """The loss of one image."""
        return self.loss / max(self.images, 1)

    @property
    def accuracy(self) -> float:
        """The share of images that were classified right."""
        return self.correct / max(self.images, 1)


@dataclass
class Run:
    """A training run: everything that a checkpoint holds."""

    settings: dict[str, Any]
    model: nn.Module
    optimizer: optim.Optimizer
    schedule: optim.lr_scheduler.LRScheduler
    order: Generator  # of the images in each epoch
    step: int = 0
    totals: Totals = field(default_factory=Totals)
    history: list[dict[str, float]] = field(default_factory=list)

    @staticmethod
    def begin(settings: dict[str, Any], images: int) -> Run:
        """A run on so many images at its first step, with freshly drawn weights."""
        vkml.manual_seed(settings["seed"])
        model = MODELS[settings["model"]]()
        optimizer = optim.Adam(model.parameters())
        schedule = optim.lr_scheduler.OneCycleLR(
            optimizer,
            PEAK_LEARNING_RATE[settings["model"]],
            epochs=settings["epochs"],
            steps_per_epoch=math.ceil(images / settings["batch"]),
        )
        return Run(settings, model, optimizer, schedule, Generator(settings["seed"]))

    def save(self, path: Path) -> None:
        """Writes the run to a file, from which `restore` continues it exactly."""
        vkml.save(
            {
                "settings": self.settings,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "step": self.step,
                "totals": vars(self.totals),
                "history": self.history,
            },
            path,
        )

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Takes over the state that `save` wrote."""
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.schedule.load_state_dict(checkpoint["schedule"])
        self.step = checkpoint["step"]
        self.totals = Totals(**checkpoint["totals"])
        self.history = checkpoint["history"]


def to_tensors(images: Any, labels: Any) -> TensorDataset:
    """Images as normalised (count, 1, 28, 28) floats and labels as integers, on the device."""
    pixels = vkml.tensor(images).reshape(-1, 1, 28, 28).to(vkml.float32)
    normalised = (pixels / 255 - PIXEL_MEAN) / PIXEL_DEVIATION
    return TensorDataset(normalised.realize(), vkml.tensor(labels.astype("int32")))


def evaluate(model: nn.Module, data: TensorDataset) -> float:
    """The share of images that the model classifies right."""
    model.eval()
    correct = 0
    with vkml.no_grad():
        for images, labels in DataLoader(data, EVALUATION_BATCH):
            correct += int((model(images).argmax(1) == labels).sum().item())
    model.train()
    return correct / len(data)


def train(
    run: Run, loader: DataLoader, test: TensorDataset, checkpoint: Path, interrupt: Interrupt
) -> bool:
    """Trains to the end, saving after each epoch.

    Returns:
        Whether the end was reached: False after Ctrl-C, with the run saved as it stands.
    """
    from tqdm import tqdm

    epochs, batches = run.settings["epochs"], len(loader)
    images = len(loader.dataset)
    first_epoch = run.step // batches
    with tqdm(
        total=epochs * images,
        initial=first_epoch * images + run.totals.images,
        unit=" images",
        unit_scale=True,
        dynamic_ncols=True,
    ) as bar:
        for epoch in range(first_epoch, epochs):
            bar.set_description(f"epoch {epoch + 1}/{epochs}")
            if not train_epoch(run, loader, epoch, bar, interrupt):
                run.save(checkpoint)
                return False
            run.history.append(
                {
                    "loss": run.totals.mean_loss,
                    "train_accuracy": run.totals.accuracy,
                    "test_accuracy": evaluate(run.model, test),
                }
            )
            run.totals = Totals()
            run.save(checkpoint)
            if interrupt.requested and epoch + 1 < epochs:
                return False
    return True


def train_epoch(run: Run, loader: DataLoader, epoch: int, bar: Any, interrupt: Interrupt) -> bool:
    """Trains on the rest of one epoch; False if Ctrl-C ended it early."""
    batches = len(loader)
    done = run.step - epoch * batches
    # Each epoch has an order of its own, which depends on the seed and the epoch alone.
    run.order.draws = epoch
    loss_sum, correct, waiting = 0.0, 0, 0
    for batch, (images, labels) in enumerate(islice(loader, done, None), start=done + 1):
        run.optimizer.zero_grad()
        logits = run.model(images)
        loss = F.cross_entropy(logits, labels, label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        run.optimizer.step()
        run.schedule.step()
        run.step += 1
        count = images.shape[0]
        loss_sum = loss_sum + loss.detach() * count
        correct = correct + (logits.detach().argmax(1) == labels).sum()
        waiting += count
        stop = interrupt.requested and batch < batches  # a whole epoch is evaluated first
        if stop or batch % STEPS_PER_READING == 0 or batch == batches:
            run.totals.loss += loss_sum.item()
            run.totals.correct += correct.item()
            run.totals.images += waiting
            bar.update(waiting)
            bar.set_postfix(
                loss=f"{run.totals.mean_loss:.3f}",
                accuracy=f"{100 * run.totals.accuracy:.1f} %",
                refresh=False,
            )
            loss_sum, correct, waiting = 0.0, 0, 0
        if stop:
            return False
    return True


# Results.


def write_results(run: Run, data: FashionMnist, test: TensorDataset, folder: Path) -> None:
    """Writes the weights and both pictures, and prints the accuracy."""
    from pictures import COLUMNS, ROWS, learning_curve, sample_predictions

    stem = f"fashion_mnist_{run.settings['model']}"
    weights = folder / f"{stem}.safetensors"
    curve = folder / f"{stem}_curve.png"
    samples = folder / f"{stem}_predictions.png"
    accuracy = evaluate(run.model, test)
    vkml.save(run.model.state_dict(), weights)
    learning_curve(run.history, f"Fashion-MNIST, {run.settings['model']}", curve)
    count = ROWS * COLUMNS
    run.model.eval()
    with vkml.no_grad():
        probabilities = F.softmax(run.model(test.tensors[0][:count]), 1).numpy()
    sample_predictions(
        data.test_images[:count], data.test_labels[:count], probabilities, CLASSES, samples
    )
    for path in (weights, curve, samples):
        print(f"wrote {path}")
    print(f"test accuracy: {100 * accuracy:.1f} %")


def check_packages() -> None:
    """Finds out before training whether the packages for bar and pictures are there."""
    missing = [name for name in ("matplotlib", "tqdm") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"missing Python packages. Install them: pip install {' '.join(missing)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    options = parse_arguments(arguments)
    check_packages()
    prepare_folder(options.out)
    device = choose_device(options.device)
    vkml.set_default_device(device)
    if options.eager:
        vkml.set_eager(True)

    checkpoint = options.out / "checkpoint.safetensors"
    saved = load_checkpoint(checkpoint) if options.resume else None
    settings = choose_settings(options, saved and saved["settings"])

    data = load_fashion_mnist(options.data)
    training = to_tensors(data.train_images, data.train_labels)
    test = to_tensors(data.test_images, data.test_labels)
    try:
        run = Run.begin(settings, len(training))
        if saved is not None:
            run.restore(saved)
    except (LookupError, TypeError, ValueError, vkml.VkmlError) as error:
        if saved is None:
            raise
        raise not_of_this_program(checkpoint) from error
    loader = DataLoader(training, settings["batch"], shuffle=True, generator=run.order)

    described = ", ".join(f"{name} {value}" for name, value in settings.items())
    print(f"device: {device}; {described}", flush=True)
    interrupt = Interrupt()
    with interrupt.watching():
        finished = train(run, loader, test, checkpoint, interrupt)
    if not finished:
        print(f"interrupted; saved {checkpoint}. Continue with --resume.")
        return INTERRUPTED
    write_results(run, data, test, options.out)
    return 0


if __name__ == "__main__":
    try:
        with raising():
            status = main()
        sys.exit(status)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (UsageError, vkml.VkmlError, OSError) as error:
        sys.exit(f"error: {error}")
