"""A bundle on the agent's side: kept fresh, read file by file, taken apart into cards."""
