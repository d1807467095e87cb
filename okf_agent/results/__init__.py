"""What a person or a script gets of an answer."""
