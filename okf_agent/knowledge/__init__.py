"""How a question gets its knowledge, one mode a file."""
