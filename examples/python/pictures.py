"""The two pictures that training leaves: a learning curve, and sample predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ROWS, COLUMNS = 4, 8


def _figure(width: float, height: float) -> Figure:
    # A figure made directly draws into memory and never looks for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def learning_curve(history: Sequence[dict[str, float]], title: str, path: Path) -> None:
    """Draws training loss, and training and test accuracy, by epoch.

    Args:
        history: One dictionary for each epoch: `loss`, `train_accuracy`, `test_accuracy`.
        title: Stands above the curves.
        path: The PNG file.
    """
    figure = _figure(9, 4)
    losses, accuracies = figure.subplots(1, 2)
    epochs = range(1, len(history) + 1)
    losses.plot(epochs, [entry["loss"] for entry in history], marker="o", label="training")
    losses.set(xlabel="epoch", ylabel="cross entropy")
    for name in ("train", "test"):
        values = [100 * entry[f"{name}_accuracy"] for entry in history]
        accuracies.plot(epochs, values, marker="o", label={"train": "training"}.get(name, name))
    accuracies.set(xlabel="epoch", ylabel="accuracy, %")
    for axes in (losses, accuracies):
        axes.grid(alpha=0.3)
        axes.legend()
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def sample_predictions(
    images: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.float32],
    classes: Sequence[str],
    path: Path,
) -> None:
    """Draws images with their predicted classes: right ones in green, wrong ones in red.

    Args:
        images: Shape (count, height, width); the first ROWS * COLUMNS are drawn.
        labels: The true classes, shape (count,).
        probabilities: What the model gives, shape (count, classes).
        classes: The names of the classes.
        path: The PNG file.
    """
    figure = _figure(1.6 * COLUMNS, 2.1 * ROWS)
    every_axes = figure.subplots(ROWS, COLUMNS).flat
    for axes, image, label, probability in zip(
        every_axes, images, labels, probabilities, strict=False
    ):
        guess = int(probability.argmax())
        right = guess == label
        text = f"{classes[guess]} {100 * probability[guess]:.0f} %"
        if not right:
            text += f"\n(is {classes[label]})"
        axes.imshow(image, cmap="gray_r")
        axes.set_title(text, fontsize=8, color="darkgreen" if right else "darkred")
        axes.set_axis_off()
    figure.savefig(path, dpi=120)
