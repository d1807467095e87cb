"""What a pack is made of: `rank` scores tables and rules, `choose` takes what fits, `write` puts it in words.

`ways` says what rules and tables lead to. `shape` says how large a pack is and how it is written: once for large
models, once for the embedded one.
"""
