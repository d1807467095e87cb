"""Whether the cells of a text column hold lists: `Artifact,Creature` where both words also stand alone."""

from __future__ import annotations

from collections.abc import Collection

SEPARATORS = (",", ";", "|", "/", "\n", "\t", "+", "&", " - ", " and ", "·")
"""What people put between several values, in the order in which it is tried."""
LONGEST_ELEMENT = 60
SHARE = 0.5
"""Of the different elements, how many must stand alone somewhere: of `Paris, France` one or the other may by chance."""


def separator(values: Collection[str]) -> str | None:
    """What separates the elements, as it stands in the cells (`,` also for `, `); None where cells hold no lists.

    >>> separator(["Artifact", "Creature", "Artifact,Creature", "Land"])
    ','
    >>> separator(["Smith, John", "Miller, Ann", "Smith"]) is None
    True
    """
    alone = {value.strip() for value in values}
    found = {each: _elements(each, values, alone) for each in SEPARATORS}
    return max((each for each in SEPARATORS if found[each]), key=lambda each: found[each], default=None)


def _elements(separator: str, values: Collection[str], alone: set[str]) -> int:
    """How many elements of lists also stand alone; 0 where that is too few for the cells to be lists."""
    elements: set[str] = set()
    for value in values:
        parts = [part.strip() for part in value.split(separator)]
        if len(parts) > 1 and all(parts) and max(map(len, parts)) <= LONGEST_ELEMENT:
            elements.update(parts)
    standing = len(elements & alone)
    return standing if standing >= 2 and standing >= SHARE * len(elements) else 0
