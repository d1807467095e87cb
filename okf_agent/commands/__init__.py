"""The command line, one group of commands a file; thin over functions that take plain values."""
