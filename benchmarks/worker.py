"""One framework in one process, timing workloads on request.

Reads requests and writes answers as one JSON object a line, so that run.py can take turns between
processes: {"prepare": name} compiles and warms a workload up and chooses how often a sample calls
it; {"sample": true} answers with the seconds of one call; {"kernels": true} with its kernels.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

from frameworks import FRAMEWORKS, Framework
from workloads import TABLES, Workload

SHORTEST_SAMPLE = 0.02
WARM_UP = 3
# Calls that time themselves are short, and their median is taken.
FEWEST_TIMED_CALLS = 21
MOST_PROFILED_CALLS = 20


class Timed:
    """A workload that is warm, and how often a sample calls it."""

    def __init__(self, framework: Framework, workload: Workload) -> None:
        self.framework = framework
        self.times_itself = workload.times_itself
        self.call = workload.make(framework)
        self.repeats = WARM_UP
        self.sample()
        self.repeats = 1
        while (taken := self._elapsed()) < SHORTEST_SAMPLE:
            longer = int(self.repeats * 1.2 * SHORTEST_SAMPLE / max(taken, 1e-6))
            self.repeats = max(self.repeats + 1, longer)

    def _elapsed(self) -> float:
        start = time.perf_counter()
        self.sample()
        return time.perf_counter() - start

    def sample(self) -> float:
        """Seconds of one call, with the device idle before and after."""
        self.framework.synchronize()
        if self.times_itself:
            repeats = max(self.repeats, FEWEST_TIMED_CALLS)
            return statistics.median(self.call() or 0.0 for _ in range(repeats))
        start = time.perf_counter()
        for _ in range(self.repeats):
            self.call()
        self.framework.synchronize()
        return (time.perf_counter() - start) / self.repeats

    def kernels(self) -> dict[str, float]:
        """Kernels of a call and the seconds that they take on the device; empty if not known."""
        repeats = min(self.repeats, MOST_PROFILED_CALLS)

        def run() -> None:
            for _ in range(repeats):
                self.call()

        self.framework.synchronize()
        found = self.framework.kernels_of(run)
        if found is None:
            return {}
        return {"count": found.count / repeats, "seconds": found.seconds / repeats}


def main(name: str, device: str, table: str) -> None:
    """Serve requests until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    framework = FRAMEWORKS[name](device)
    known = {workload.name: workload for workload in TABLES[table]()}
    answers.write(json.dumps({"ready": framework.describe()}) + "\n")

    timed: Timed | None = None
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            if "prepare" in request:
                timed = None  # frees the data of the workload before
                timed = Timed(framework, known[request["prepare"]])
                answer: dict[str, Any] = {"repeats": timed.repeats}
            elif timed is None:
                answer = {"error": "nothing is prepared"}
            elif "kernels" in request:
                answer = timed.kernels()
            else:
                answer = {"seconds": timed.sample()}
        except Exception as error:  # one workload failing must not end the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
