"""A quick look at one device: devices, an MLP step, the fused chain, softmax, matrix products."""

from __future__ import annotations

import sys
import time

import vkml
from vkml import nn


def median_time(run, repeats: int = 7) -> float:
    """Median seconds of `run`, after one warm-up."""
    run()
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return sorted(samples)[repeats // 2]


def main() -> None:
    """Prints a few timings of the device named on the command line."""
    device = vkml.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 24
    for info in vkml.devices():
        print(info, info.features)
    vkml.set_default_device(device)
    vkml.manual_seed(0)

    a, b = vkml.rand(size).realize(), vkml.rand(size).realize()

    def repeated(make, count=10):
        for _ in range(count):
            result = make()
            result.realize()
        vkml.synchronize(device)

    seconds = median_time(lambda: repeated(lambda: vkml.sigmoid(a * b + a) * vkml.tanh(b) - a / 2)) / 10
    print(f"chain {size}: {seconds * 1e3:.3f} ms, {12 * size / seconds / 1e9:.1f} GB/s", flush=True)
    seconds = median_time(lambda: repeated(lambda: a.sum())) / 10
    print(f"sum {size}: {seconds * 1e3:.3f} ms, {4 * size / seconds / 1e9:.1f} GB/s", flush=True)

    rows = min(8192, max(64, int(size**0.5)))
    x = vkml.randn(rows, rows).realize()
    seconds = median_time(lambda: repeated(lambda: vkml.softmax(x, -1))) / 10
    print(f"softmax {rows}^2: {seconds * 1e3:.3f} ms, {8 * rows**2 / seconds / 1e9:.1f} GB/s", flush=True)
    seconds = median_time(lambda: repeated(lambda: vkml.layer_norm(x, (rows,)))) / 10
    print(f"layer_norm {rows}^2: {seconds * 1e3:.3f} ms, {8 * rows**2 / seconds / 1e9:.1f} GB/s", flush=True)
    for n in (512, 1024, 2048, 4096):
        if n > rows:
            break
        m = vkml.randn(n, n).realize()
        seconds = median_time(lambda m=m: repeated(lambda: m @ m, 3)) / 3
        print(f"matmul {n}: {seconds * 1e3:.3f} ms, {2 * n**3 / seconds / 1e12:.3f} TFLOP/s", flush=True)

    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    images, labels = vkml.randn(64, 784).realize(), vkml.randint(0, 10, (64,)).realize()
    for optimizer in (
        vkml.optim.SGD(model.parameters(), lr=0.01),
        vkml.optim.Adam(model.parameters(), lr=1e-3),
    ):

        def step(optimizer=optimizer):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        for _ in range(5):
            loss = step()
        seconds = median_time(lambda step=step: [step() for _ in range(20)]) / 20
        name = type(optimizer).__name__
        print(f"MLP {name} step: {seconds * 1e3:.3f} ms, loss {loss:.6f}", flush=True)
    print(vkml.cache_info(device))


if __name__ == "__main__":
    main()
