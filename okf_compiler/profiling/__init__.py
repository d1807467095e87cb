"""What the data itself says: measured once in the database, without a model, and kept beside the bundles.

`run.profile` measures, `load` and `values.open` read what was measured, `text` puts it in words.
"""

from okf_compiler.profiling.facts import ColumnProfile, ForeignKeyProfile, Profile, TableProfile
from okf_compiler.profiling.store import load

__all__ = ["ColumnProfile", "ForeignKeyProfile", "Profile", "TableProfile", "load"]
