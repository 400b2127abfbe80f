"""Generator: a seeded source of draws and orders, the same on every machine and NumPy version."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import vkml
from vkml import _vkml
from vkml.argument_errors import check_arguments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Generator(_vkml._RandomStream):
    """A source of random draws that depend on its seed and on how many it has given, only.

    What functions that draw take as `generator`, to leave vkML's own stream (`vkml.manual_seed`)
    where it is; and what decides the orders of `vkml.data`. Seed and count are its whole state, so
    that a resumed run continues where the first one stopped. Draws are the same on every device.
    A function under `vkml.jit` draws from vkML's own stream alone.

    Args:
        seed: Any integer from 0 to 2^64 - 1.
        device: Accepted for PyTorch's sake: a generator serves every device.

    Attributes:
        draws: How many draws and permutations it has given. May be set.
    """

    def __init__(self, seed: int = 0, *, device: vkml.DeviceLike | None = None) -> None:
        super().__init__()
        self.manual_seed(seed)

    @staticmethod
    def of(generator: Generator | int | None) -> Generator:
        """A generator from a generator, from a seed, or seeded by vkML's own random stream."""
        if isinstance(generator, Generator):
            return generator
        if generator is None:
            generator = int(vkml.randint(0, 2**31 - 1, (1,)).item())
        return Generator(generator)

    def manual_seed(self, seed: int) -> Generator:
        """Begins anew with another seed."""
        if not 0 <= seed < 2**64:
            raise vkml.ArgumentError(
                f"[Generator] seed is {seed}. Pass an integer from 0 to 2^64 - 1."
            )
        self._seed = seed
        self.draws = 0
        return self

    def seed(self) -> int:
        """Begins anew with a seed that the operating system gives, and returns it."""
        self.manual_seed(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it began with."""
        return self._seed

    def get_state(self) -> vkml.Tensor:
        """Seed and count of draws: int64 of shape (2,), on the CPU; for `set_state`."""
        words = [self._seed, self.draws]
        signed = [word - 2**64 if word >= 2**63 else word for word in words]
        return vkml.tensor(signed, dtype=vkml.int64, device=vkml.cpu)

    def set_state(self, new_state: vkml.Tensor) -> Generator:
        """Continues where `get_state` was called."""
        if new_state.dtype != vkml.int64 or tuple(new_state.shape) != (2,):
            raise vkml.ArgumentError(
                f"[set_state] the state is {new_state.dtype} of shape {tuple(new_state.shape)}. "
                "Pass what get_state() of a vkml.Generator gave."
            )
        self._seed, self.draws = (word % 2**64 for word in new_state.tolist())
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _continued, (self._seed, self.draws)

    def permutation(self, length: int) -> NDArray[np.int64]:
        """The numbers below `length` in random order."""
        import numpy as np

        return np.argsort(self._words(length), kind="stable").astype(np.int64, copy=False)

    def uniform(self, length: int) -> NDArray[np.float64]:
        """`length` numbers in [0, 1), multiples of 2^-53."""
        import numpy as np

        return np.asarray((self._words(length) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def integers(self, end: int, length: int) -> NDArray[np.int64]:
        """`length` integers from 0 to end - 1, each time any of them; `end` is at most 2^53."""
        import numpy as np

        return (self.uniform(length) * end).astype(np.int64)

    def _words(self, length: int) -> NDArray[np.uint64]:
        import numpy as np

        # NumPy keeps the raw stream of a bit generator for ever, but not what it makes of it.
        bits = np.random.Philox(key=np.array([self._seed, self.draws], dtype=np.uint64))
        self.draws += 1
        return np.asarray(bits.random_raw(length), dtype=np.uint64)


def _continued(seed: int, draws: int) -> Generator:
    generator = Generator(seed)
    generator.draws = draws
    return generator


check_arguments(globals())
