"""How long the threads of oneDNN spin while they wait for each other.

libgomp's default is to spin for milliseconds. That is right on cores of one's own; but when another
program wants a core, each of the many short regions of a step waits for a time slice of the
scheduler, and a step takes ten to twenty times as long. A thousand turns, libgomp's own choice when
it has more threads than cores, cost little on idle cores and avoid that.

libgomp reads the variable when it is loaded, so this module is imported before the native one. What
the user has set is left alone.
"""

import os

if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
