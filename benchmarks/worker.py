"""One framework in one process, timing workloads on request.

Reads requests and writes answers as one JSON object a line, so that run.py can take turns between
processes: {"prepare": name} compiles and warms a workload up and chooses how often a sample calls
it; {"sample": true} answers with the seconds of one call.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from frameworks import FRAMEWORKS, Framework
from workloads import SIZES, workloads

SHORTEST_SAMPLE = 0.02
WARM_UP = 3


def timed(framework: Framework, call: Callable[[], None], repeats: int) -> float:
    """Seconds of one of `repeats` calls, with the device idle before and after."""
    framework.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    framework.synchronize()
    return (time.perf_counter() - start) / repeats


def repeats_for(framework: Framework, call: Callable[[], None]) -> int:
    """How many calls make a sample long enough, after warming up."""
    timed(framework, call, WARM_UP)
    repeats = 1
    while True:
        seconds = timed(framework, call, repeats) * repeats
        if seconds >= SHORTEST_SAMPLE:
            return repeats
        repeats = max(repeats + 1, int(repeats * 1.2 * SHORTEST_SAMPLE / max(seconds, 1e-6)))


def main(name: str, device: str, sizes: str) -> None:
    """Serve requests until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    framework = FRAMEWORKS[name](device)
    known = {workload.name: workload for workload in workloads(SIZES[sizes])}
    answers.write(json.dumps({"ready": framework.describe()}) + "\n")

    call: Callable[[], None] = lambda: None  # noqa: E731
    repeats = 1
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            if "prepare" in request:
                call = lambda: None  # noqa: E731  (frees the data of the workload before)
                call = known[request["prepare"]].make(framework)
                repeats = repeats_for(framework, call)
                answer: dict[str, Any] = {"repeats": repeats}
            else:
                answer = {"seconds": timed(framework, call, repeats)}
        except Exception as error:  # one workload failing must not end the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
