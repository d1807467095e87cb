"""Source formats, one a file: each `read(...)` returns a `Database`."""
