"""How much memory this process has held at most."""

from __future__ import annotations

import sys


def held_mb() -> float:
    """The peak of resident memory in MB, 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
