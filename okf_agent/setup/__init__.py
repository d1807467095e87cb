"""How `okf-agent init` sets up a database of one's own, or the demo."""
