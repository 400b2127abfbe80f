"""Work that keeps any device busy for a known time."""

import time

import vkml


def product_that_takes(seconds: float) -> vkml.Tensor:
    """A square matrix whose product with itself takes about so long on the device, or longer."""
    side = 128
    while True:
        x = vkml.full((side, side), 0.5 / side).realize()
        (x @ x).realize()  # compiles
        start = time.perf_counter()
        (x @ x).realize()
        vkml.synchronize()
        if time.perf_counter() - start >= seconds:
            return x
        side *= 2
