"""The bundles and the read-only database for any agent that speaks the Model Context Protocol.

stdio.py and http.py are the two doors, server.py is what the SDK calls behind them: tools.py, resources.py and
prompts.py (with completions.py). Each of their calls is done by calls.py, on record (records.py), with what
databases.py serves. For HTTP, tokens.py says who may come in and limits.py bounds what each may use.
"""
