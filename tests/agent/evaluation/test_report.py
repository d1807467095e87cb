"""The report: its figures, that a record's text stays text, that it needs nothing from outside, and how it looks."""

import importlib.util
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.eval_folders import HOSTILE, Size, make_evaluation, write_lines

from okf_agent.evaluation import figures, plots, report, show
from okf_agent.evaluation.shown_steps import LIMITS, Part, Step, shortened, steps_of
from okf_agent.evaluation.store import Evaluation
from okf_compiler.errors import UserError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SMALL = Size(tasks=31, result_chars=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small evaluation with its report; `pack` had seen the hold-out before."""
    evals = tmp_path_factory.mktemp("evals")
    folder = make_evaluation(evals / "small", SMALL)
    facts = json.loads((folder / "eval.json").read_text(encoding="utf-8"))
    facts["seen_holdout"] = {"pack": ["before (2026-11-30, with other settings.rules)"]}
    (folder / "eval.json").write_text(json.dumps(facts), encoding="utf-8")
    report.write(folder)
    return folder


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / report.HTML).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def markdown(folder: Path) -> str:
    return (folder / report.MARKDOWN).read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Every element with its attributes, and the texts between them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def elements(html: str) -> Elements:
    parser = Elements()
    parser.feed(html)
    return parser


def test_the_figures_are_those_of_the_records(folder: Path, html: str, markdown: str) -> None:
    scores = [json.loads(line) for line in (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    for cell in SMALL.cells:
        mine = [score for score in scores if score["cell"] == cell and score["strict"] is not None]
        share = 100 * sum(score["strict"] for score in mine) / len(mine)
        assert len(mine) == 2 * (31 - 2)  # one task has no score, the gold of another fails
        assert f"| {cell}: openai/scripted-70b, {cell} | {share:.1f} % (" in markdown
        assert f"{share:.1f} %" in html
        misses = sum(score["miss"] == "formula differs" for score in mine)
        assert re.search(rf"^\| formula differs \|.* {misses or '–'} \|", markdown, re.M)


def test_other_scores_are_means_and_shares(folder: Path, html: str, markdown: str) -> None:
    scores = [json.loads(line) for line in read(folder / "scores.jsonl")]
    mine = [score for score in scores if score["cell"] == "pack"]
    scored = [score for score in mine if score["strict"] is not None]
    f1 = 100 * sum(score["soft_f1"] for score in mine) / len(mine)
    match = 100 * sum(score["judge"] == "MATCH" for score in mine) / len(mine)
    agrees = 100 * sum((score["judge"] == "MATCH") is score["strict"] for score in scored) / len(scored)
    cost = f"${0.0005 * len(mine):.4f}"
    assert f"| pack | {f1:.1f} | – | {match:.1f} % | {agrees:.1f} % | {cost} |" in markdown
    assert f"<td>{f1:.1f}</td><td>–</td><td>{match:.1f} %</td><td>{agrees:.1f} %</td><td>{cost}</td>" in html


def test_the_report_says_of_what_its_intervals_draw(tmp_path: Path, html: str, markdown: str) -> None:
    assert "bootstrap intervals over databases" in html and "bootstrap intervals over databases" in markdown
    one = make_evaluation(tmp_path / "one", Size(tasks=8, repeat=1))
    runs = [json.loads(line) | {"database": "shop"} for line in read(one / "runs.jsonl")]
    write_lines(one / "runs.jsonl", runs)
    for file in report.write(one):
        assert "bootstrap intervals over tasks" in file.read_text(encoding="utf-8")


def read(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_every_part_is_there(html: str, markdown: str) -> None:
    heads = ("Cells", "Differences", "By difficulty", "By database", "Misses by class", "Other scores")
    heads += ("Reading and repeats", "How to read this")
    for head in heads:
        assert f"<h2>{head}</h2>" in html and f"## {head}\n" in markdown
    for column in ("pass@2", "median calls", "same verdict in all repeats", "knowledge recall"):
        assert column in html.lower() and f"| {column} |" in markdown
    assert html.count('<svg role="img" aria-label="') == 4
    assert "On the Pareto front: " in html and "pass@2" in html
    seen = ") was asked held-out tasks before: in before (2026-11-30, with other settings.rules)."
    assert seen in html and seen in markdown.replace("\\", "")
    assert "gold fails in 2" in html


def test_a_page_for_every_question_with_every_run(html: str, elements: Elements) -> None:
    pages = re.findall(r'<template id="t-\d+">.*?</template>', html, re.S)
    assert len(pages) == 31
    for page in pages:
        assert page.count('<section class="side"') == 3 and page.count('<div class="run">') == 6
        assert "<details" in page and "calls submit_answer" in page
    links = [attrs["href"] for tag, attrs in elements.found if tag == "a" and str(attrs["href"]).startswith("#q-")]
    assert {f"#q-{i}" for i in range(1, 32)} <= set(links)


def test_what_a_record_says_stays_text(html: str, markdown: str, elements: Elements) -> None:
    assert "<script>document.title" not in html and "<img" not in html and "\x1b" not in html
    assert {tag for tag, _ in elements.found if tag == "script"} == {"script"}
    assert sum(tag == "script" for tag, _ in elements.found) == 1
    assert sum(HOSTILE.replace("\x1b", "\\x1b") in text for text in elements.text) > 10
    assert "<script" not in markdown and "{{ 7*7 }}" in html  # no template is made of a record


def test_it_needs_nothing_from_outside(elements: Elements) -> None:
    for tag, attrs in elements.found:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert str(attrs.get(name) or "#").startswith(("#", "data:")), (tag, attrs)
    policies = [attrs["content"] for _, attrs in elements.found if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policies and str(policies[0]).startswith("default-src 'none'")


def test_what_is_shown_is_named_for_those_who_do_not_see_it(elements: Elements) -> None:
    assert ("html", {"lang": "en"}) in elements.found
    for tag, attrs in elements.found:
        if tag == "svg":
            assert attrs["role"] == "img" and len(str(attrs["aria-label"])) > 40
        if tag == "th":
            assert attrs.get("scope") in ("row", "col")
        if attrs.get("class") == "scroll":
            assert attrs["aria-label"] and attrs["tabindex"] == "0"


def luminance(colour: str) -> float:
    """Of `#rrggbb`, as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_enough_in_light_and_dark() -> None:
    css = (report.TEMPLATES / "report.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in css.split(":root {")[1:3])
    assert contrast("#ffffff", "#000000") == 21
    for colours in (light, dark):
        for ink in ("ink", "muted", "link"):
            for back in ("paper", "card", "tint"):
                assert contrast(colours[ink], colours[back]) >= 4.5, (ink, back)
        for name in ("good", "bad", "mixed"):
            assert contrast(colours[name], colours[f"{name}-back"]) >= 4.5, name
        for i in range(6):
            assert contrast(colours[f"c{i}"], colours["card"]) >= 3, i


def test_the_same_records_give_the_same_report(folder: Path, html: str) -> None:
    report.write(folder)
    assert (folder / report.HTML).read_text(encoding="utf-8") == html


def test_without_gold_it_says_that_nothing_is_scored(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "none", Size(tasks=3, cells=("pack",), repeat=1))
    write_lines(folder / "scores.jsonl", [])
    for path in report.write(folder):
        assert "Nothing is scored" in path.read_text(encoding="utf-8")


def test_steps_that_are_gone_and_unknown_costs_are_no_error(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "gone", Size(tasks=3, cells=("pack",), repeat=1))
    shutil.rmtree(folder / "steps")
    long = {"sql": "SELECT " + "1 + " * 2_000 + "1", "answer": "no", "checked": "ran"}
    runs = [json.loads(line) | {"cost_usd": None, "answer": None} for line in read(folder / "runs.jsonl")]
    write_lines(folder / "runs.jsonl", runs)
    write_lines(folder / "runs.jsonl", [runs[0] | {"answer": long}, *runs[1:]])
    html = report.write(folder)[0].read_text(encoding="utf-8")
    assert "1 + 1 +" in html and "… the record has the rest." in html and len(re.findall(r"1 \+ ", html)) < 1_001
    assert "Its steps are not kept any more." in html and "No answer." in html
    assert html.count("<svg") == 2  # seconds and misses; neither cost nor tokens are known


def test_what_the_figures_leave_out_is_said(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "part", Size(tasks=2))
    facts = json.loads((folder / "eval.json").read_text(encoding="utf-8"))
    facts |= {"out_of_scope": 3, "notes": ["Gold is of <yesterday>."]}
    (folder / "eval.json").write_text(json.dumps(facts), encoding="utf-8")
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    kept = [line | {"cached_calls": 2} for line in lines[:-1]]
    write_lines(folder / "runs.jsonl", kept)
    write_lines(folder / "scores.jsonl", [])
    html, markdown = (path.read_text(encoding="utf-8") for path in report.write(folder))
    wanted = len(facts["tasks"]) * len(facts["cells"]) * facts.get("repeat", 1)
    for text in (
        f"Not finished: {len(kept)} of {wanted} runs are done.",
        f"{len(kept)} runs are not scored yet.",
        "3 management tasks of the suite",
        "calls were answered by kept replies",
    ):
        assert text in html and text in markdown
    assert "Gold is of &lt;yesterday&gt;." in html


def test_a_run_whose_tokens_are_unknown_has_none_and_counts_in_no_median(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "unknown", Size(tasks=2, repeat=1))
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    unknown = next(line for line in lines if line["cell"]["name"] == "pack")
    for file, blank in (
        (folder / "runs.jsonl", unknown["run_id"]),
        (folder / "steps" / f"{unknown['run_id']}.jsonl", ""),
    ):
        text = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in text:
            if line.get("run_id", "") == blank:
                line |= {"input_tokens": None, "output_tokens": None}
            if line.get("event") == "ModelReplied":
                line["usage"] |= {"input_tokens": None, "output_tokens": None}
        write_lines(file, text)
    cells = {cell.name: cell for cell in figures.read(Evaluation.load(folder))}
    (known,) = {run.tokens for run in cells["pack"].runs} - {None}
    assert cells["pack"].tokens == known and cells["pack"].tokens_unknown == 1
    html, markdown = (path.read_text(encoding="utf-8") for path in report.write(folder))
    for text in (html, markdown):
        assert "pack: the tokens of 1 of 2 runs are not known." in text
    assert "– tokens" in html and "– in, – out" in html
    shown = show.show(folder, unknown["task_id"])
    assert "– tokens" in shown and "– tokens in, – out" in shown


@pytest.mark.parametrize(("calls", "labels"), [(1, ["1"]), (2, ["1", "2"]), (3, ["1", "2", "3"])])
def test_model_calls_are_counted_in_whole_numbers(calls: int, labels: list[str]) -> None:
    svg = plots.steps({"pack": [1_000.0 * n for n in range(1, calls + 1)]})
    axis = svg.split("matplotlib.axis_1")[1].split("matplotlib.axis_2")[0]
    assert re.findall(r">([\d.]+)</text>", axis) == labels


def test_no_run_no_report(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "empty", Size(tasks=1, repeat=1))
    write_lines(folder / "runs.jsonl", [])
    with pytest.raises(UserError, match="no finished run"):
        report.write(folder)
    with pytest.raises(UserError, match="no evaluation"):
        report.write(tmp_path)


def test_misses_that_no_score_names_are_asked_for(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "old", Size(tasks=5, repeat=1), with_misses=False)
    (schema, *_) = figures.read(Evaluation.load(folder))
    assert set(schema.misses) == {"not classified"}


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ({}, []),
        ({"a": (1.0, 0.5)}, ["a"]),
        ({"a": (2.0, 0.5), "b": (1.0, 0.5)}, ["b"]),
        ({"a": (1.0, 0.2), "b": (2.0, 0.5), "c": (3.0, 0.4), "d": (4.0, 0.6)}, ["a", "b", "d"]),
        ({"a": (1.0, 0.5), "b": (1.0, 0.6)}, ["b"]),
    ],
)
def test_the_pareto_front(points: dict[str, tuple[float, float]], front: list[str]) -> None:
    assert plots.pareto(points) == front


def test_long_texts_are_cut_to_a_run_s_share_and_counted() -> None:
    steps = [Step(1, 0, 0, tuple(Part("result", "x" * 10_000) for _ in range(10)))]
    for most, limit in ((10**9, 10_000), (45_000, 4_000), (6_000, 500), (1, LIMITS[-1])):
        (step,) = shortened(steps, most)
        kept = min(limit, 4_000)
        assert {(len(part.text), part.cut) for part in step.parts} == {(kept, 10_000 - kept)}


def test_steps_show_calls_results_and_what_failed() -> None:
    events = [
        {"event": "Instructions", "messages": []},
        {"event": "ModelFailed", "step": 1, "error": "no"},
        {
            "event": "ModelReplied",
            "step": 1,
            "content": "",
            "reasoning": "hm",
            "tool_calls": [
                {"name": "read_file", "arguments": '{"paths": ["/a.md", "/b.md"]}'},
                {"name": "x", "arguments": "{"},
            ],
            "usage": {"input_tokens": 7, "output_tokens": 2},
        },
        {"event": "ToolFinished", "step": 1, "name": "read_file", "text": "gone", "failed": True},
        {"event": "Told", "step": 2, "text": "last call"},
    ]
    first, second = steps_of(events)
    assert (first.input_tokens, first.output_tokens) == (7, 2)
    assert [(part.label, part.text, part.failed) for part in first.parts] == [
        ("model call failed", "no", True),
        ("reasoning", "hm", False),
        ("calls read_file", "/a.md\n/b.md", False),
        ("calls x", "{", False),
        ("result of read_file", "gone", True),
    ]
    assert [part.text for part in second.parts] == ["last call"]


@pytest.mark.slow
def test_three_hundred_tasks_in_three_cells_fit_one_file(tmp_path: Path) -> None:
    folder = make_evaluation(tmp_path / "big", Size(tasks=300, repeat=1, result_chars=5_500))
    html = report.write(folder)[0]
    assert html.stat().st_size < 40_000_000
    assert "characters are left out here" in html.read_text(encoding="utf-8")


def browse(path: Path, hash: str, *options: str) -> subprocess.CompletedProcess[str]:
    profile = f"--user-data-dir={path.parent / 'browser'}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    command = [str(CHROMIUM), *flags, profile, *options, path.as_uri() + hash]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True)


def test_what_it_needs_is_said_where_only_a_part_is_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else here(name))
    with pytest.raises(UserError, match=r"needs matplotlib, which the extra `eval` brings: .*uv sync --extra eval"):
        report.write(folder)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; Debian has it as the package chromium")
def test_a_browser_shows_the_overview_and_a_question(folder: Path) -> None:
    path = folder / report.HTML
    overview, question = (browse(path, hash, "--dump-dom") for hash in ("", "#q-1"))
    for shown in (overview, question):
        assert "CONSOLE" not in shown.stderr, shown.stderr  # no script error, nothing that the policy refused
    assert "31 of 31" in overview.stdout
    assert re.search(r'<div id="page" hidden="">\s*</div>', overview.stdout)
    assert "<title>shop_0 · small: evaluation</title>" in question.stdout
    assert re.search(r'<div id="overview" hidden="">', question.stdout)
    page = question.stdout.split('<div id="page">')[1].split("<noscript>")[0]
    assert page.count('<div class="run">') == 6 and "&lt;script&gt;document.title" in page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; Debian has it as the package chromium")
def test_captions_are_whole_on_a_narrow_page(folder: Path, tmp_path: Path) -> None:
    measure = """<script>addEventListener("load", () => {
        const right = each => each.getBoundingClientRect().right <= innerWidth - 24;
        document.title = [...document.querySelectorAll("caption span")].map(right).join() + " " + innerWidth;
    })</script>"""
    html = (folder / report.HTML).read_text(encoding="utf-8").replace("</body>", f"{measure}</body>")
    (tmp_path / "narrow.html").write_text(html, encoding="utf-8")
    shown = browse(tmp_path / "narrow.html", "", "--dump-dom", "--window-size=500,900").stdout
    assert "<title>true,true,true 500</title>" in shown


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; Debian has it as the package chromium")
def test_a_browser_draws_and_prints_it(folder: Path, tmp_path: Path) -> None:
    path = folder / report.HTML
    picture, paper = tmp_path / "report.png", tmp_path / "report.pdf"
    browse(path, "", f"--screenshot={picture}", "--window-size=1200,1600")
    browse(path, "", f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 50_000
    assert paper.read_bytes().startswith(b"%PDF") and 2 <= paper.read_bytes().count(b"/Type /Page\n") <= 12
