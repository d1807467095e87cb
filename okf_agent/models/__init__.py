"""Models: providers, errors, the embedded one, and what models write instead of tool calls."""
