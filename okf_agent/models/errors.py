"""Errors of model calls: which of them pass, how long to wait, what a person can do about the others.

They are told apart by what the server said (models/wire.py), and where it said nothing by the error itself.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from okf_agent.models.bounded import Timeout
from okf_agent.models.providers import provider_of
from okf_agent.models.reply import sent_error
from okf_compiler.console import without_passwords
from okf_compiler.errors import UserError
from okf_compiler.inert import inert

if TYPE_CHECKING:
    from okf_agent.models.wire import Heard

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
SECRET_TEXT = re.compile(r"\b(sk-|nvapi-|gsk_|AIza|Bearer )[\w.-]{8,}")
NO_TOOLS = re.compile(
    r"not support (tool|function)|support tool use|tool.choice|(tool|function)s? (calling |use )?(is|are) not",
    re.IGNORECASE,
)
OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size|limit)|exceeds? the .{0,30}context|model_max_prompt_tokens|"
    r"(prompt|inputs?|request|conversation)( is| are)? too (long|large)",
    re.IGNORECASE,
)
"""Words for a conversation that does not fit, whatever the status."""
SIZE = r"(?:tokens?\b|prompt|inputs?\b|messages\b|sequence|characters)"
MOST = (
    r"(?:exceed|too (?:long|large|many)|(?:longer|greater|more|less) than|reduce the length|\bover (?:the )?limit|"
    r"\blimit (?:is|of|exceeded|reached)|limit: |maximum|\bmax\b|max_?length|at most|only supports? up to|must be <=|"
    r"should be \[|> ?\d)"
)
OVER_LIMIT = re.compile(rf"{SIZE}.{{0,120}}?{MOST}|{MOST}.{{0,120}}?{SIZE}", re.IGNORECASE | re.DOTALL)
"""Tokens held against a limit, which a request that is refused as wrong or too large is told."""
REPLY_SIZE = re.compile(r"max_(?:completion_|output_|new_)?tokens\b|(?:output|completion) tokens", re.IGNORECASE)
SENT_SIZE = re.compile(r"context|prompt|inputs?\b|messages\b|request(?:ed)?\b", re.IGNORECASE)
OTHER_SIZE = re.compile(
    r"\btools?\b|\bfunctions?\b|temperature|top_p|\bstop\b|per[ -](?:minute|day)|\bkey\b", re.IGNORECASE
)
"""Other things than the conversation that may be too long or too many."""
SPENT = re.compile(
    r"insufficient_quota|credit balance|per[ _-]?(?:day|week|month)\b|PerDay|\b(?:daily|weekly|monthly)\b|\b[RT]PD\b",
    re.IGNORECASE,
)
"""A quota that no waiting of minutes brings back."""
DETAILS = 4_000
"""Characters of a server's words that are looked at."""
FILTERED = re.compile(
    r"content[ _]?(?:filter|management policy|policy)|safety (?:system|polic)|usage policies", re.IGNORECASE
)


@dataclass(frozen=True)
class Failure:
    """A model call without a reply: what the server said, with the status that it had."""

    error: Exception
    said: str
    """One line, without secrets."""
    details: str
    """All that is known of it, for telling kinds apart; nobody is shown it."""
    status: int | None
    """The server's own; None where none was heard, and LiteLLM's counts for nothing."""
    broken: bool = False
    """The server sent a whole reply, and it is none of a model."""


def redact(text: str) -> str:
    """`text` without the secrets of the environment, passwords of URLs, nor anything that looks like a key."""
    secrets = {value for name, value in os.environ.items() if SECRET_NAME.search(name) and len(value) >= 6}
    for secret in sorted(secrets, key=len, reverse=True):  # one may begin with another
        text = text.replace(secret, "***")
    return SECRET_TEXT.sub(r"\1***", without_passwords(text))


def failure(error: Exception, heard: Heard) -> Failure:
    """What went wrong in a call, by what was heard of the server, and by LiteLLM's error where nothing was."""
    body = bytes(heard.body)
    details = body[:DETAILS].decode("utf-8", "replace") if heard.asked else f"{error} {getattr(error, 'body', '')}"
    status = heard.status
    if not heard.asked and (claimed := getattr(error, "status_code", None)) != 500:  # LiteLLM's word for all of its own
        status = claimed
    if heard.too_large:
        return Failure(error, "the server sent far more than a reply can be", "", status, broken=True)
    sent = sent_error(body)
    if status == 200 and sent is None and heard.whole:
        said = f"what the server sent is no reply of a model: {_short(details) or 'nothing'}"
        return Failure(error, said, "", status, broken=True)
    if sent is None:
        return Failure(error, one_line(error), details, status)
    if status == 200:  # the error of a provider behind the server
        code = str(sent.get("code") or "")
        status = int(code) if code.isdecimal() else 500
    return Failure(error, _short(str(sent.get("message") or sent)), details, status)


def failed_call(heard: Heard) -> str | None:
    """What a model wrote for a tool call that its server could not read and answered with status 400."""
    sent = sent_error(bytes(heard.body)) if heard.status == 400 else None
    if not sent or not ("failed_generation" in sent or sent.get("code") == "tool_use_failed"):
        return None
    return str(sent.get("failed_generation") or "")


def wants_other_limit(failed: Failure) -> bool:
    """Whether the server takes the limit of a reply as max_completion_tokens alone, as OpenAI's reasoning models do."""
    return failed.status == 400 and "max_completion_tokens" in failed.said and "not supported" in failed.said


def explain(failed: Failure, model: str, api_base: str | None) -> UserError:
    """The error of a model call for a person, with the remedy."""
    return UserError(f"The model {model} could not be called: {failed.said}\n{_remedy(failed, model, api_base)}")


def _remedy(failed: Failure, model: str, api_base: str | None) -> str:
    said, status, error = failed.said, failed.status, failed.error
    provider = provider_of(model)
    key = (provider and provider.key) or f"the key of {model.partition('/')[0]}"
    where = api_base or "the provider"
    if "LLM Provider NOT provided" in said:
        return "No provider has this name. Write it as provider/model, for example openai/gpt-5-mini, see PROVIDERS.md."
    if failed.broken:
        return f"Is {where} the address of a model's API? For OpenAI's form it usually ends in /v1: model.api_base."
    if status in (401, 403) or _caused_by(error, UnicodeError) or "api_key" in said:
        return f"The provider does not accept the key. Check {key} in .env, see PROVIDERS.md."
    if status in (400, 404, 422) and NO_TOOLS.search(said):
        return "This model cannot call tools. Choose one that can with --model, see PROVIDERS.md."
    if status == 400 and "temperature" in said and "support" in said:
        return "This model takes no temperature but its own. Set model.temperature to 1 in config.yaml."
    if status == 400 and REPLY_SIZE.search(said):
        return "Set model.max_tokens in config.yaml to what the model takes."
    if FILTERED.search(failed.details) or _is_a(error, "ContentPolicyViolationError"):
        return "The provider's content filter stopped this question. Word it differently, or choose another model."
    if _bad_address(error):
        return (
            f"{where} is no address that can be called: http:// or https:// stands before it. Correct model.api_base."
        )
    if _refused(error):
        return f"Nothing answers at {where}. Start the server, or correct model.api_base in config.yaml."
    if status == 404:
        return "There is no such model there. Check model.name and model.api_base in config.yaml, or --model."
    if _quota_spent(failed):
        return "The account's quota or credit is used up: waiting does not help. Look at its billing and limits."
    if status == 429:
        return "The provider's rate limit did not clear. Try again later, or raise model.retries."
    if _is_a(error, "Timeout"):
        return "Raise model.timeout_s in config.yaml, or choose a faster model."
    return "Try again, or choose another model with --model; PROVIDERS.md says what to expect."


def passes(failed: Failure) -> bool:
    """Whether another try may succeed: the server is busy or out of order, or the connection was lost."""
    import httpx

    error, status = failed.error, failed.status
    if failed.broken or _refused(error) or _bad_address(error) or _quota_spent(failed):
        return False
    if status is not None and status >= 300:
        return (status in (408, 425, 429) or status >= 500) and not FILTERED.search(failed.details)
    return _caused_by(error, httpx.TimeoutException, httpx.TransportError, ConnectionError, Timeout)


def too_long(failed: Failure) -> bool:
    """Whether the conversation does not fit the model; LiteLLM knows the words of some servers only.

    >>> too_long(Failure(Exception(), "", "Input length 131393 exceeds the allowed length of 131040 tokens.", 400))
    True
    >>> too_long(Failure(Exception(), "", "max_tokens: 8192 > 4096, the maximum of output tokens", 400))
    False
    """
    said = failed.details
    if OVERFLOW.search(said):
        return True
    if OTHER_SIZE.search(said):
        return False
    if _is_a(failed.error, "ContextWindowExceededError"):
        return True
    if failed.status not in (400, 413, 422):
        return False
    of_reply = REPLY_SIZE.search(said) and not SENT_SIZE.search(REPLY_SIZE.sub("", said))
    return failed.status == 413 or bool(OVER_LIMIT.search(said) and not of_reply)


def _quota_spent(failed: Failure) -> bool:
    """Whether a 402 or 429 means that the account has nothing left, or nothing for today."""
    return failed.status == 402 or (failed.status in (400, 403, 429) and bool(SPENT.search(failed.details)))


def _refused(error: Exception) -> bool:
    """Whether no server was reached at all: connection refused, or no such host."""
    import httpx

    return _caused_by(error, httpx.ConnectError, ConnectionRefusedError)


def _bad_address(error: Exception) -> bool:
    import httpx

    return _caused_by(error, httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError)


def _caused_by(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Whether the error, or one that led to it, is of one of these kinds."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def retry_after(error: Exception) -> float | None:
    """Seconds the provider asks to wait, from either form of the header; None if it names none."""
    response = getattr(error, "response", None)
    for headers in (getattr(response, "headers", None), getattr(error, "litellm_response_headers", None)):
        value = (headers or {}).get("retry-after")
        if value:
            try:
                return max(0.0, float(value))
            except ValueError:
                pass
            try:
                return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
            except (TypeError, ValueError):
                continue
    return None


def one_line(error: Exception) -> str:
    """The error in one line of at most 500 characters, without LiteLLM's own prefixes, and without secrets."""
    text = " ".join(str(error).partition("Traceback (most recent call last)")[0].split())
    text = re.sub(r"^(litellm\.)?(\w+: )?(litellm\.)?\w+Error: |^litellm\.\w+: ", "", text)
    return _short(re.sub(r"^\w+Exception - ", "", text))


def _short(text: str) -> str:
    # A secret that is cut in two would not be found.
    return inert(redact(" ".join(text.split())))[:500]


def _is_a(error: Exception, *names: str) -> bool:
    """Whether the error's class, or one it comes from, has one of these names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)
