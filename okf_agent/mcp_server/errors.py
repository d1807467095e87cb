"""What a client is told of an error, and what only the server's log is told."""

from __future__ import annotations

import logging

from okf_agent import prompts
from okf_agent.models.errors import redact
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)


class ClientError(UserError):
    """A client asked for what it cannot have. The text is for it, and says nothing of the server's machine."""


def for_client(error: UserError) -> str:
    """What a client is told of an error.

    Any but a ClientError is for whoever runs the server: its text may name folders, hosts and users there.
    """
    if isinstance(error, ClientError):
        return str(error)
    logger.error("%s", redact(str(error)))
    return prompts.say("mcp_unable")
