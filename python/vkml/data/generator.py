"""Generator: a seeded source of orders and draws, the same on every machine and NumPy version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vkml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Generator:
    """Gives permutations and draws that depend on its seed and on how many it has given, only.

    Both numbers are its whole state, so that a resumed run continues where the first one stopped.

    Args:
        seed: Any integer from 0 to 2^64 - 1.

    Attributes:
        draws: How many permutations and draws it has given. May be set.
    """

    def __init__(self, seed: int = 0) -> None:
        self.draws = 0
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

    def initial_seed(self) -> int:
        """The seed it began with."""
        return self._seed

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
