"""The commands of the prompt, and what /help says of each; `session.DOES` does them."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "/db": "[NAME]  the databases there are, or go over to one",
    "/knowledge": "[NAME]  the ways of giving a model knowledge, or go over to one",
    "/raw": "the same as /knowledge raw",
    "/bundle": "the same as /knowledge bundle",
    "/model": "[NAME]  the model that answers, or another one",
    "/compare": "[NAME]  the last question again with other knowledge (raw, or bundle), side by side",
    "/sql": "[SQL]  the last query, to edit and run yourself; or one of your own",
    "/rows": "[N]  the rows of the last query again, or its first N",
    "/save": "FILE  write all rows of the last query: .csv, .json, .md, .txt; -f writes over a file",
    "/why": "the rules the answer rests on, whole, and what else was read",
    "/right": "[NOTE]  keep that the answer is right",
    "/wrong": "[NOTE]  keep that the answer is wrong, and why",
    "/cost": "what this session took",
    "/runs": "[N]  the last runs on record",
    "/clear": "clear the screen",
    "/new": "forget the conversation: the next question stands alone",
    "/help": "this list",
    "/exit": "leave; /quit and Ctrl-D do too",
    "/quit": "",
}
