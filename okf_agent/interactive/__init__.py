"""The prompt: what is typed, what its commands do, what is said first."""
