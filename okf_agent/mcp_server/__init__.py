"""The bundles and the read-only database for any agent that speaks the Model Context Protocol.

served.py says what there is; tools.py, resources.py and prompts.py are the three ways to it. service.py answers
requests with them: clients.py says who asks, work.py does it on record (records.py), errors.py says what a client is
told when that fails, and changes.py tells clients of bundles that changed. server.py makes it the SDK's server.
stdio.py and http.py are the two doors; what HTTP needs besides is in tokens.py (who may come in, how much they may
use) and guard.py (what is refused before it is read). The rest of the project is synchronous: calls.py runs it in
threads, and pool.py bounds their connections to PostgreSQL.
"""
