"""A token that sees one of two databases: no name, address, argument or completion leads it to the other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from support.endpoint import Endpoint
from support.mcp_server import SECRETS, Running, add_store, client, configured, over_http, run, texts
from support.workspace import ACTIVE, Workspace

from okf_agent.cell import Cell

RULE = "---\ntype: Business Rule\ntitle: {}\ndescription: Of quaggas.\n---\n\nA quagga counts once.\n"
RULES = {"zanzibar-rule.md": "Zanzibar Rule", "quagga-fees.md": "Quagga Fees"}
"""What the other database has alone. Attacks name Zanzibar; no answer may have a quagga."""
HIDDEN = "quagga"
NAMES: list[Any] = [
    *("shop", "SHOP", "Shop", " shop", "shop ", "shop\0", "shop\n", "shop.", "./shop", "../shop", "store/../shop"),
    *(
        "\uff53\uff48\uff4f\uff50",
        "sh\u043ep",
        "\u017fhop",
        "shop\u200b",
        "\ufeffshop",
        "sho\u0440",
        "%73hop",
        "shop,store",
    ),
    *(["shop"], ["store", "shop"], {"name": "shop"}, 0, True, ""),
]
"""The other database in other letters, look-alikes, paths and kinds; a long s is one that case folding makes an s."""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"paths": ["/knowledge/zanzibar-rule.md", "/index.md"]}),
    ("search", {"query": "zanzibar"}),
    ("run_sql", {"sql": "SELECT 'qua' || 'gga'"}),
    ("find_value", {"values": ["zanzibar"]}),
    ("ask", {"question": "How many animals?"}),
]
PATHS = (
    *("../shop/knowledge/zanzibar-rule.md", "/../shop/knowledge/zanzibar-rule", "/tables/../../shop/index.md"),
    *("shop/knowledge/zanzibar-rule.md", "okf://shop/knowledge/zanzibar-rule.md", "..\\shop\\index.md", "%2e%2e/shop"),
)
HOSTS = (
    *(
        "shop",
        "SHOP",
        "%73hop",
        "shop.",
        "\u017fhop",
        "sh\u043ep",
        "shop@store",
        "store@shop",
        "store:80@shop",
        "shop:80",
    ),
    *("store%2F..%2Fshop", "store/../shop", "store/%2e%2e/shop", "store/..%2Fshop", "store//shop", "/shop", "[shop]"),
)
"""What may stand between `okf://` and the path of a file."""


@pytest.fixture
def guarded(shop: Workspace, tmp_path: Path) -> Iterator[Running]:
    """A server of two databases, of which bob sees the store; only the other one's bundle has the rule."""
    add_store(shop)
    with Endpoint(ACTIVE) as endpoint:
        shop.configure(endpoint.url)
        config = configured(shop, tokens={"bob": {"databases": ["store"]}})
        cell = Cell("openai/scripted")
        with over_http(config, names=("shop", "store"), secrets=SECRETS, cell=cell) as running:
            bundles = running.service.databases.bundles
            for name in bundles:
                shutil.copytree(bundles[name], tmp_path / name)
                bundles[name] = tmp_path / name
            for file, title in RULES.items():
                text = RULE.format(title)
                (tmp_path / "shop" / "knowledge" / file).write_text(text, encoding="utf-8", newline="\n")
            with (tmp_path / "shop" / "index.md").open("a", encoding="utf-8", newline="\n") as index:
                index.write(f"\n{HIDDEN}\n")
            yield running
        assert not endpoint.requests, "a question was put to a model"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_a_token_does_not_see_does_not_exist_for_it(guarded: Running, mode: str) -> None:
    async def talk() -> None:
        async with client(guarded.url, SECRETS["bob"], mode) as bob:
            answers = [bob.instructions, *[await answer async for answer in _attacks(bob)]]
            for answer in answers:
                assert not [text for text in texts(answer) if HIDDEN in text.lower()], answer
            assert len(answers) > 200
            assert await _completed(bob, "database", "", {}) == ["store"]

    run(talk)


def test_who_may_see_it_is_shown_it_on_each_of_these_ways(guarded: Running) -> None:
    async def talk() -> None:
        async with client(guarded.url, SECRETS["alice"]) as alice:
            given: list[Any] = []
            for name, arguments in CALLS[:3]:
                given.append(await alice.call_tool(name, {"database": "shop", **arguments}))
            given.append(await alice.read_resource("okf://shop/knowledge/zanzibar-rule.md"))
            given.append(await alice.get_prompt("explain_rule", {"rule": "Zanzibar Rule", "database": "shop"}))
            for answer in given:
                assert [text for text in texts(answer) if HIDDEN in text.lower()], answer
            assert await _completed(alice, "rule", "quag", {"database": "shop"}) == ["Quagga Fees"]

    run(talk)


def test_a_database_that_may_not_be_seen_is_refused_like_one_that_is_not_there(guarded: Running) -> None:
    async def talk() -> None:
        async with client(guarded.url, SECRETS["bob"]) as bob:
            for name, arguments in CALLS:
                hidden, absent = [
                    (await bob.call_tool(name, {**arguments, "database": each})).content[0].text
                    for each in ("shop", "shap")
                ]
                assert hidden == absent.replace("shap", "shop")
                assert "The databases are: store." in hidden
            hidden, absent = [await _tried(bob.read_resource(f"okf://{each}/index.md")) for each in ("shop", "shap")]
            assert hidden == absent.replace("shap", "shop")

    run(talk)


async def _attacks(bob: Client) -> Any:
    """Every attack, to be awaited for its answer."""
    for name in NAMES:
        for tool, arguments in CALLS:
            yield _tried(bob.call_tool(tool, {**arguments, "database": name}))
        if isinstance(name, str):
            for rule in ("Zanzibar Rule", "/knowledge/zanzibar-rule.md"):
                yield _tried(bob.get_prompt("explain_rule", {"rule": rule, "database": name}))
            both = {"first": "Active Customer", "second": "Zanzibar Rule", "database": name}
            yield _tried(bob.get_prompt("compare_definitions", both))
            yield _completed(bob, "rule", "", {"database": name})
            yield _completed(bob, "path", "", {"database": name}, "okf://{database}/{+path}")
    for path in PATHS:
        yield _tried(bob.call_tool("read_file", {"paths": [path]}))
        yield _tried(bob.get_prompt("explain_rule", {"rule": path}))
    for host in HOSTS:
        for file in ("index.md", "knowledge/zanzibar-rule.md"):
            yield _tried(bob.read_resource(f"okf://{host}/{file}"))
    for typed in ("", "sh", "quag"):
        yield _completed(bob, "rule", typed, {})
        yield _completed(bob, "rule", typed, {}, "okf://{database}/knowledge/{rule}.md")
    for cursor in (None, "0", "1", "200", "-1"):
        yield _tried(bob.list_resources(cursor=cursor))
    yield _tried(bob.list_tools())
    yield _tried(bob.call_tool("list_databases", {}))
    yield _tried(bob.call_tool("list_databases", {"database": "shop"}))


async def _tried(asked: Any) -> Any:
    try:
        return await asked
    except MCPError as error:
        return str(error)


async def _completed(asking: Client, argument: str, typed: str, chosen: dict[str, str], template: str = "") -> Any:
    ref: Any = types.PromptReference(name="explain_rule")
    if template:
        ref = types.ResourceTemplateReference(uri=template)
    found = await asking.complete(ref, {"name": argument, "value": typed}, context_arguments=chosen or None)
    return found.completion.values
