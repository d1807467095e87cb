"""What the agent's role may do: made, checked, shown."""
