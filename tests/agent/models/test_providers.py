from __future__ import annotations

import os
from pathlib import Path

import pytest

from okf_agent.llm import litellm_module
from okf_agent.models.providers import LOCAL, PROVIDERS, Provider, choose_model, provider_of
from okf_compiler.errors import UserError

ROOT = Path(__file__).parents[3]
NIM = "nvidia_nim/nvidia/nemotron-3-super-120b-a12b"


@pytest.mark.parametrize(
    ("asked", "configured", "api_base", "env", "chosen"),
    [
        (None, NIM, None, {}, LOCAL),
        (None, NIM, None, {"NVIDIA_NIM_API_KEY": "k"}, NIM),
        ("openai/gpt-5-mini", NIM, None, {"OPENAI_API_KEY": "k"}, "openai/gpt-5-mini"),
        ("ollama_chat/qwen3:8b", NIM, None, {}, "ollama_chat/qwen3:8b"),
        ("openai/mine", NIM, "http://127.0.0.1:1", {}, "openai/mine"),
        ("gpt-4o", NIM, None, {"OPENAI_API_KEY": "k"}, "gpt-4o"),
        ("deepseek/deepseek-chat", NIM, None, {}, "deepseek/deepseek-chat"),
        (LOCAL, NIM, None, {}, LOCAL),
    ],
)
def test_which_model_answers(
    asked: str | None, configured: str, api_base: str | None, env: dict[str, str], chosen: str
) -> None:
    choice = choose_model(asked, configured, api_base, env)
    assert choice.name == chosen
    assert bool(choice.notice) == (chosen == LOCAL and asked is None)


@pytest.mark.parametrize(
    ("asked", "env", "named"),
    [
        (NIM, {}, "NVIDIA_NIM_API_KEY"),
        ("gpt-4o", {}, "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", {"OPENAI_API_KEY": "k"}, "ANTHROPIC_API_KEY"),
        (None, {"GROQ_API_KEY": "k"}, "NVIDIA_NIM_API_KEY"),
    ],
)
def test_a_missing_key_is_named(asked: str | None, env: dict[str, str], named: str) -> None:
    with pytest.raises(UserError, match=f"{named} is not set.*\n.*env.example"):
        choose_model(asked, NIM, None, env)


@pytest.mark.parametrize(
    ("name", "env", "said"),
    [
        ("azure/mine", {"AZURE_API_KEY": "k"}, "AZURE_API_BASE and AZURE_API_VERSION must say where"),
        ("azure/mine", {"AZURE_API_KEY": "k", "AZURE_API_BASE": "https://b"}, "AZURE_API_VERSION must say where"),
        ("hosted_vllm/mine", {}, "HOSTED_VLLM_API_BASE must say where"),
    ],
)
def test_an_address_that_nobody_can_guess_is_asked_for(name: str, env: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=f"^{said}"):
        choose_model(name, NIM, None, env)
    provider = provider_of(name)
    assert provider is not None
    known = env | dict.fromkeys(provider.address, "https://there")
    assert choose_model(name, NIM, None, known).name == choose_model(name, NIM, "http://x", env).name == name


@pytest.mark.parametrize("name", ["no-such-model", "unheard_of/model"])
@pytest.mark.parametrize("api_base", [None, "http://127.0.0.1:1"])
def test_an_unknown_provider_is_refused(name: str, api_base: str | None) -> None:
    with pytest.raises(UserError, match=rf"No provider is known for the model {name}\.\nWrite it as provider/model"):
        choose_model(name, NIM, api_base, {})


@pytest.mark.parametrize(
    ("api_base", "env", "named"),
    [
        ("localhost:18321/v1", {}, "model.api_base in config.yaml is localhost:18321/v1"),
        ("127.0.0.1:1", {}, "for example http://127.0.0.1:1"),
        ("ftp://x", {}, "model.api_base"),
        (None, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "gateway/v1"}, "OPENAI_BASE_URL is gateway/v1"),
        (None, {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": "gateway/v1"}, "OPENAI_API_BASE is gateway/v1"),
    ],
)
def test_an_address_without_a_scheme_is_refused(api_base: str | None, env: dict[str, str], named: str) -> None:
    with pytest.raises(UserError, match=named):
        choose_model("openai/mine", NIM, api_base, env)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda p: p.prefix)
def test_litellm_knows_each_provider_its_variables_and_that_it_takes_tools(provider: Provider) -> None:
    litellm = litellm_module()
    model = provider.example.replace("<", "").replace(">", "").replace(" ", "-")
    name, prefix, *_ = litellm.get_llm_provider(model)
    assert (f"{prefix}/{name}", prefix) == (model, provider.prefix)
    assert "tools" in litellm.get_supported_openai_params(name, custom_llm_provider=prefix)
    with pytest.MonkeyPatch.context() as patched:
        for variable in [v for v in os.environ if v.endswith(("_API_KEY", "_API_BASE", "_API_VERSION"))]:
            patched.delenv(variable)
        missing = set(litellm.validate_environment(model)["missing_keys"])
    assert {*([provider.key] if provider.key else []), *provider.address} - {"HOSTED_VLLM_API_BASE"} <= missing


def test_env_example_and_the_page_name_every_variable() -> None:
    for page in (".env.example", "PROVIDERS.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for provider in PROVIDERS:
            named = [*([provider.key] if provider.key else []), *provider.address]
            assert [variable for variable in named if variable not in text] == []


def test_every_example_belongs_to_its_provider() -> None:
    assert all(p.example.startswith(p.prefix + "/") for p in PROVIDERS)
