"""Search in a bundle's concepts: BM25 over a persisted index that follows the bundle. No model takes part.

`text.py` takes texts apart, `words.py` says what else a question's words may be called, `store.py` keeps the index on
disk, `index.py` answers.
"""
