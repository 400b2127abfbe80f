"""Cross entropy and its gradient read the logits once, and are exact where the logits are large."""

import numpy as np
import pytest

import vkml
import vkml.nn.functional as F
from checking import assert_close

ROWS, CLASSES = 256, 4099
IGNORED = 7


def reference(logits: np.ndarray, labels: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
    """The mean loss over the rows that count, and its gradient."""
    shifted = logits - logits.max(1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    onehot = np.eye(CLASSES)[labels]
    wanted = onehot * (1 - smoothing) + smoothing / CLASSES
    weight = (labels != IGNORED) / (labels != IGNORED).sum()
    loss = -(weight[:, None] * wanted * log_p).sum()
    return loss, weight[:, None] * (np.exp(log_p) - wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("offset", [0.0, 3e4])
def test_value_and_gradient(smoothing: float, offset: float, device: object) -> None:
    generator = np.random.default_rng(0)
    numbers = (generator.standard_normal((ROWS, CLASSES)) * 3 + offset).astype(np.float32)
    labels = generator.integers(0, CLASSES, ROWS)
    labels[::9] = IGNORED
    logits = vkml.tensor(numbers, device=device, requires_grad=True)
    target = vkml.tensor(labels, device=device)
    loss = F.cross_entropy(logits, target, ignore_index=IGNORED, label_smoothing=smoothing)
    loss.backward()
    value, gradient = reference(numbers.astype(np.float64), labels, smoothing)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(logits.grad.numpy(), gradient, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("reads_loss_first", [False, True])
def test_one_kernel_reads_the_logits(reads_loss_first: bool, device: object) -> None:
    logits = vkml.randn(ROWS, CLASSES, device=device).to(vkml.bfloat16).detach()
    target = vkml.randint(0, CLASSES, (ROWS,), device=device)
    vkml.realize([logits, target])
    logits.requires_grad_()
    with vkml.profile() as p:
        loss = F.cross_entropy(logits, target)
        if reads_loss_first:
            loss.item()
        loss.backward()
        vkml.realize([loss, logits.grad])
    large = [run for run in p.runs if run.bytes_read >= 2 * ROWS * CLASSES]
    assert len(large) == (2 if reads_loss_first else 1)
    # Nothing of the size of the logits is written but their gradient, in its own dtype.
    written = sum(run.bytes_written for run in p.runs)
    assert written == pytest.approx(2 * ROWS * CLASSES, rel=0.01)


def test_a_gradient_that_is_differentiated_again(device: object) -> None:
    generator = np.random.default_rng(1)
    numbers = generator.standard_normal((3, 5)).astype(np.float32)
    logits = vkml.tensor(numbers, device=device, requires_grad=True)
    target = vkml.tensor([4, 0, 2], device=device)
    (gradient,) = vkml.grad(F.cross_entropy(logits, target), [logits], create_graph=True)
    direction = vkml.tensor(generator.standard_normal((3, 5)).astype(np.float32), device=device)
    (product,) = vkml.grad((gradient * direction).sum(), [logits])
    p = np.exp(numbers.astype(np.float64))
    p /= p.sum(1, keepdims=True)
    v = direction.numpy().astype(np.float64)
    assert_close(product * 3, p * (v - (p * v).sum(1, keepdims=True)))
