"""The bundles and the read-only database for any agent that speaks the Model Context Protocol.

served.py says what there is; tools.py, resources.py and prompts.py are the three ways to it; records.py keeps what
each client did; service.py answers requests with them, and server.py makes it the SDK's server. stdio.py and http.py
are the two doors; what HTTP needs besides is in tokens.py (who may come in, how much they may use) and guard.py (what
is refused before it is read). The rest of the project is synchronous: calls.py runs it in threads, and pool.py bounds
their connections to PostgreSQL.
"""
