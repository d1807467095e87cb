"""Errors of model calls: which of them pass, how long to wait, what a person can do about the others.

They are LiteLLM's, told apart by status, words and class name, so that this file need not import it.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from okf_agent.models.providers import provider_of
from okf_compiler.console import without_passwords
from okf_compiler.errors import UserError

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
SECRET_TEXT = re.compile(r"\b(sk-|nvapi-|gsk_|AIza|Bearer )[\w.-]{8,}")
NO_TOOLS = re.compile(
    r"not support (tool|function)|support tool use|tool.choice|(tool|function)s? (calling |use )?(is|are) not",
    re.IGNORECASE,
)
OVERFLOW = re.compile(
    r"context.?(length|window|size)|(prompt|input|request) (is )?too (long|large)|exceeds? the .{0,30}context",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """`text` without the secrets of the environment, passwords of URLs, nor anything that looks like a key."""
    secrets = {value for name, value in os.environ.items() if SECRET_NAME.search(name) and len(value) >= 6}
    for secret in sorted(secrets, key=len, reverse=True):  # one may begin with another
        text = text.replace(secret, "***")
    return SECRET_TEXT.sub(r"\1***", without_passwords(text))


def explain(error: Exception, model: str, api_base: str | None) -> UserError:
    """The error of a model call for a person, with the remedy."""
    said = one_line(error)
    provider = provider_of(model)
    key = (provider and provider.key) or f"the key of {model.partition('/')[0]}"
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        remedy = f"The provider does not accept the key. Check {key} in .env, see PROVIDERS.md."
    elif NO_TOOLS.search(said) and status in (400, 404, 422):
        remedy = "This model cannot call tools. Choose one that can with --model, see PROVIDERS.md."
    elif _refused(error):
        where = api_base or "the provider"
        remedy = f"Nothing answers at {where}. Start the server, or correct model.api_base in config.yaml."
    elif "LLM Provider NOT provided" in said:
        said = "the name has no known provider"
        remedy = "Write it as provider/model, for example openai/gpt-5-mini, see PROVIDERS.md."
    elif status == 404:
        remedy = "There is no such model there. Check model.name in config.yaml, or --model."
    elif _quota_spent(error):
        remedy = "The account's quota or credit is used up: waiting does not help. Look at its billing."
    elif status == 429:
        remedy = "The provider's rate limit did not clear. Try again later, or raise model.retries."
    elif _is_a(error, "Timeout"):
        remedy = "Raise model.timeout_s in config.yaml, or choose a faster model."
    else:
        remedy = "Try again, or choose another model with --model; PROVIDERS.md says what to expect."
    return UserError(f"The model {model} could not be called: {said}\n{remedy}")


def passes(error: Exception) -> bool:
    """Whether another try may succeed."""
    # LiteLLM dresses mistakes of its own as connection errors.
    if _refused(error) or _quota_spent(error) or _caused_by(error, AttributeError, TypeError):
        return False
    status = getattr(error, "status_code", None) or 0
    passing = _is_a(error, "Timeout", "APIConnectionError")
    return passing or status in (408, 429) or status >= 500


def too_long(error: Exception) -> bool:
    """Whether the conversation does not fit the model; LiteLLM knows the words of some servers only.

    "Request too large" becomes a rate limit (429) there, though no waiting helps.
    """
    if _is_a(error, "ContextWindowExceededError"):
        return True
    text = f"{error} {getattr(error, 'body', '')}"
    return (getattr(error, "status_code", None) or 500) < 500 and bool(OVERFLOW.search(text))


def _quota_spent(error: Exception) -> bool:
    """Whether a 402 or 429 means that the account has nothing left."""
    text = f"{error} {getattr(error, 'body', '')}"
    return getattr(error, "status_code", None) == 402 or "insufficient_quota" in text or "credit balance" in text


def _refused(error: Exception) -> bool:
    """Whether no server was reached at all: connection refused, or no such host."""
    import httpx

    return _caused_by(error, httpx.ConnectError, ConnectionRefusedError)


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
    """The error in one line of at most 500 characters, without LiteLLM's own prefixes and without secrets."""
    text = " ".join(str(error).split())
    text = re.sub(r"^(litellm\.)?(\w+: )?(litellm\.)?\w+Error: |^litellm\.\w+: ", "", text)
    return redact(re.sub(r"^\w+Exception - ", "", text))[:500]  # what is cut in two would not be found


def _is_a(error: Exception, *names: str) -> bool:
    """Whether the error's class, or one it comes from, has one of these names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)
