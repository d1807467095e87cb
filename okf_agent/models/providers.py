"""Which provider a model belongs to, and the variable that holds its key. PROVIDERS.md is checked against this."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from okf_compiler.console import without_passwords
from okf_compiler.errors import UserError


@dataclass(frozen=True)
class Provider:
    """A provider as LiteLLM names it: models are `<prefix>/<name>`."""

    prefix: str
    title: str
    key: str | None
    """The variable with its key; None where no key is needed."""
    example: str
    """A model name that calls tools."""
    address: tuple[str, ...] = ()
    """Variables that say where it is, needed unless model.api_base does: LiteLLM knows no address of its own."""


PROVIDERS = (
    Provider("nvidia_nim", "NVIDIA NIM", "NVIDIA_NIM_API_KEY", "nvidia_nim/nvidia/nemotron-3-super-120b-a12b"),
    Provider("ollama_chat", "Ollama", None, "ollama_chat/qwen3:8b"),
    Provider("groq", "Groq", "GROQ_API_KEY", "groq/openai/gpt-oss-120b"),
    Provider("openai", "OpenAI", "OPENAI_API_KEY", "openai/gpt-5-mini"),
    Provider("gemini", "Gemini", "GEMINI_API_KEY", "gemini/gemini-2.5-flash"),
    Provider("anthropic", "Anthropic", "ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
    Provider("openrouter", "OpenRouter", "OPENROUTER_API_KEY", "openrouter/qwen/qwen3-coder"),
    Provider(
        "azure", "Azure OpenAI", "AZURE_API_KEY", "azure/<your deployment>", ("AZURE_API_BASE", "AZURE_API_VERSION")
    ),
    Provider("hosted_vllm", "vLLM", None, "hosted_vllm/<served model>", ("HOSTED_VLLM_API_BASE",)),
    Provider("llamafile", "llama.cpp server", None, "llamafile/<any name>"),
)

LOCAL = "local"
"""The model name of the embedded model."""


@dataclass(frozen=True)
class ModelChoice:
    """The model that will answer, and what to tell the user about that choice ("" if nothing)."""

    name: str
    notice: str = ""


def provider_of(model: str) -> Provider | None:
    """The provider of a LiteLLM model name; None for one that this list does not have."""
    prefix = model.partition("/")[0]
    return next((p for p in PROVIDERS if p.prefix == prefix), None)


def choose_model(
    asked: str | None, configured: str, api_base: str | None, env: Mapping[str, str] = os.environ
) -> ModelChoice:
    """Return the model to use: the one asked for by name, else the configured one, else the embedded one.

    Only a configured model that nobody asked for, in an environment without a key of any provider, gives way to
    the embedded model.

    Raises:
        UserError: no provider has this model, its key or address is missing, or the address has no scheme.
    """
    name = asked or configured
    if name == LOCAL:
        return ModelChoice(name)
    provider = provider_of(name) or _found_by_litellm(name)
    _check_addresses(provider, api_base, env)
    if api_base or provider is None:
        return ModelChoice(name)
    missing = provider.key is not None and not env.get(provider.key)
    if missing and asked is None and not any(p.key and env.get(p.key) for p in PROVIDERS):
        return ModelChoice(
            LOCAL,
            f"No model key is set, so the small embedded model answers; it is often wrong. "
            f"For {name}, put {provider.key} into .env (see PROVIDERS.md).",
        )
    if missing:
        raise UserError(
            f"{provider.key} is not set, and {name} needs it.\n"
            "Add it to .env (.env.example shows how, PROVIDERS.md where to get it), choose another model with\n"
            "--model, or set model.api_base for a server of your own, which needs none.",
            status=2,
        )
    unset = [variable for variable in provider.address if not env.get(variable)]
    if unset:
        raise UserError(
            f"{' and '.join(unset)} must say where {name} is.\n"
            f"Add it to .env (see .env.example and PROVIDERS.md), or set model.api_base in config.yaml.",
            status=2,
        )
    return ModelChoice(name)


def _check_addresses(provider: Provider | None, api_base: str | None, env: Mapping[str, str]) -> None:
    """Raise where an address has no scheme: nobody can call it."""
    named = {"model.api_base in config.yaml": api_base}
    if provider and not api_base:
        variables = (*provider.address, f"{provider.prefix.upper()}_API_BASE", f"{provider.prefix.upper()}_BASE_URL")
        named |= {variable: env.get(variable) for variable in variables if variable.endswith(("_BASE", "_URL"))}
    for where, address in named.items():
        if address and not address.lower().startswith(("http://", "https://")):
            raise UserError(
                f"{where} is {without_passwords(address)}, which is no address of a server.\n"
                f"Write the scheme before it, for example http://{without_passwords(address)}",
                status=2,
            )


def _found_by_litellm(model: str) -> Provider | None:
    """Return the provider of a name that the list above does not have, as LiteLLM tells it; its import takes seconds.

    None for one of LiteLLM's many others, whose keys have more names than one: their first call says what is missing.

    Raises:
        UserError: LiteLLM does not know the provider either.
    """
    from okf_agent.llm import litellm_module

    try:
        _, prefix, *_ = litellm_module().get_llm_provider(model)
    except Exception:
        near = "" if "/" in model else f" If it is OpenAI's, write openai/{model}."
        raise UserError(
            f"No provider is known for the model {model}.\n"
            f"Write it as provider/model, for example openai/gpt-5-mini; PROVIDERS.md lists providers.{near}",
            status=2,
        ) from None
    return provider_of(f"{prefix}/")
