"""A database's dump into the server."""
