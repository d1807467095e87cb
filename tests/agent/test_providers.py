from __future__ import annotations

import pytest

from okf_agent.providers import LOCAL, PROVIDERS, choose_model
from okf_compiler.settings import UserError

NIM = "nvidia_nim/nvidia/nemotron-3-super-120b-a12b"


@pytest.mark.parametrize(
    ("asked", "configured", "api_base", "env", "chosen"),
    [
        (None, NIM, None, {}, LOCAL),
        (None, NIM, None, {"NVIDIA_NIM_API_KEY": "k"}, NIM),
        ("openai/gpt-5-mini", NIM, None, {"OPENAI_API_KEY": "k"}, "openai/gpt-5-mini"),
        ("ollama_chat/qwen3:8b", NIM, None, {}, "ollama_chat/qwen3:8b"),
        ("openai/mine", NIM, "http://127.0.0.1:1", {}, "openai/mine"),
        ("unheard_of/model", NIM, None, {}, "unheard_of/model"),
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
    [(NIM, {}, "NVIDIA_NIM_API_KEY"), (None, {"GROQ_API_KEY": "k"}, "NVIDIA_NIM_API_KEY")],
)
def test_a_missing_key_is_named(asked: str | None, env: dict[str, str], named: str) -> None:
    with pytest.raises(UserError, match=f"{named} is not set.*\n.*env.example"):
        choose_model(asked, NIM, None, env)


def test_every_example_belongs_to_its_provider() -> None:
    assert all(p.example.startswith(p.prefix + "/") for p in PROVIDERS)
