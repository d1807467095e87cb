"""Which provider a model belongs to, and the variable that holds its key. PROVIDERS.md is checked against this."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

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
    """The model to use: the one asked for by name, else the configured one, else the embedded one.

    Only a configured model that nobody asked for, in an environment without a key of any provider, gives way to
    the embedded model.

    Raises:
        UserError: the model's key is missing; names its variable.
    """
    name = asked or configured
    provider = provider_of(name)
    if provider is None or api_base:
        return ModelChoice(name)
    if provider.key is None or env.get(provider.key):
        unset = [variable for variable in provider.address if not env.get(variable)]
        if unset:
            raise UserError(
                f"{' and '.join(unset)} must say where {name} is.\n"
                f"Add it to .env (see .env.example and PROVIDERS.md), or set model.api_base in config.yaml.",
                status=2,
            )
        return ModelChoice(name)
    if asked is None and not any(p.key and env.get(p.key) for p in PROVIDERS):
        return ModelChoice(
            LOCAL,
            f"No model key is set, so the small embedded model answers; it is often wrong. "
            f"For {name}, put {provider.key} into .env (see PROVIDERS.md).",
        )
    raise UserError(
        f"{provider.key} is not set, and {name} needs it.\n"
        "Add it to .env (.env.example shows how, PROVIDERS.md where to get it), choose another model with --model,\n"
        "or set model.api_base for a server of your own, which needs none.",
        status=2,
    )
