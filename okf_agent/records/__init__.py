"""Records of runs: written as they happen, read back."""
