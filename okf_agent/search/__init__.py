"""Search in a bundle's concepts: BM25 over a persisted index that follows the bundle. No model takes part.

Two rankings of the same stems: this one, with synonyms, finds what the `search` tool and signposts name. `ranking.py`
scores by shared stems alone, without an index, for packs, which ask what a question says and not what it may mean;
packs of large bundles take from both.

`text.py` takes texts apart and has the stop words, `words.py` says what else a question's words may be called,
`store.py` keeps the index on disk, `index.py` answers.
"""
