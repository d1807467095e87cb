"""How much memory this process has held at most."""

from __future__ import annotations

import resource
import sys


def held_mb() -> float:
    """Return the peak of resident memory in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
