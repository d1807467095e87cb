"""What is fetched from its publisher: checked, resumable."""
