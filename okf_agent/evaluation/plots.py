"""The report's plots, as SVG that stands in its HTML: colours are the page's own variables, text stays text.

Matplotlib is told placeholder colours, which are replaced by `var(--…)`; so one drawing suits light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from okf_agent.evaluation.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, LINE, PAPER = "#000101", "#000102", "#000103", "#000104"
COLOURS = 6
"""Cells have colours `--c0` … `--c5`, then again, with other markers."""
PLACEHOLDERS = {INK: "var(--ink)", MUTED: "var(--muted)", LINE: "var(--line)", PAPER: "var(--paper)"}
PLACEHOLDERS |= {f"#00020{i}": f"var(--c{i})" for i in range(COLOURS)}
MARKERS = "osD^vP"
WIDE = 30
"""Times that the dearest cell costs the cheapest, past which the axis is logarithmic."""
MOST_STEPS = 15
OFFSETS = tuple((right, up) for up in (6, -15, 20, -29, 34, -43, 48) for right in (11, -11))
"""Where a point's name may stand beside it, in points, the best place first."""
NEAR = (6, -15)
"""Heights at which a name needs no line to its point."""
MARK, LETTER, LINE_HEIGHT = 8, 6.2, 12
"""Half a point's size, a letter's mean width and a name's height, in points."""
OUTSIDE = 9
"""Names and points that a name had better cover than reach over the axis."""


def scatter(points: Mapping[str, tuple[float | None, Interval]], price: str, unit: str) -> str:
    """Accuracy against a price (dollars, seconds), the Pareto front as a line through ringed points; "" for no point.

    `points` are all cells, so that each keeps its colour; one whose price is None is not drawn.
    """
    known = {name: (x, y) for name, (x, y) in points.items() if x is not None and y.n}
    if not known:
        return ""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(price)
    front = pareto({name: (x, y.value) for name, (x, y) in known.items()})
    least, most = min(x for x, _ in known.values()), max(x for x, _ in known.values())
    if least > 0 and most / least > WIDE:
        axes.set_xscale("log")
        axes.set_xlim(least / 1.6, most * 2.2)
    else:
        axes.set_xlim(0, most * 1.25 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_ylim(0, 104)
    axes.set_xlabel(f"{price} ({unit})")
    axes.set_ylabel("accuracy (%)")
    line = [(known[name][0], 100 * known[name][1].value) for name in front]
    axes.plot(*zip(*line, strict=True), color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)
    for i, name in enumerate(points):
        if name in known:
            _point(axes, i, *known[name], on_front=name in front)
    _name_points(axes, {name: (x, 100 * y.value) for name, (x, y) in known.items()})
    told = "; ".join(f"{name} {100 * y.value:.0f} % at {x:.4g} {unit}" for name, (x, y) in known.items())
    return _svg(figure, f"Accuracy against {price}: {told}. On the Pareto front: {', '.join(front)}.")


def steps(tokens: Mapping[str, Sequence[float]]) -> str:
    """Median input tokens of each model call, a line a cell; "" without any."""
    if not any(tokens.values()):
        return ""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure("tokens by step")
    for i, (name, values) in enumerate(tokens.items()):
        shown = values[:MOST_STEPS]
        numbers = range(1, len(shown) + 1)
        axes.plot(
            numbers, shown, color=_colour(i), marker=_marker(i), markersize=4.5, linewidth=1.6, label=_label(name)
        )
    axes.set_ylim(0, 1.08 * max(value for values in tokens.values() for value in values[:MOST_STEPS]) or 1)
    axes.set_xlim(0.5, min(MOST_STEPS, max(map(len, tokens.values()))) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("model call")
    axes.set_ylabel("median input tokens")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _legend(axes, len(tokens))
    told = "; ".join(f"{name} {values[0]:,.0f} to {values[-1]:,.0f}" for name, values in tokens.items() if values)
    return _svg(figure, f"Median input tokens, first call to last: {told}.")


def misses(kinds: Sequence[str], shares: Mapping[str, Mapping[str, float]]) -> str:
    """Misses by class in percent of a cell's scored runs, a bar a cell; "" without a miss."""
    if not kinds:
        return ""
    figure, axes = _figure("misses by class", height=1.0 + 0.1 * len(kinds) * (len(shares) + 0.9))
    thick = 0.8 / max(1, len(shares))
    for i, (name, found) in enumerate(shares.items()):
        places = [row + (i - (len(shares) - 1) / 2) * thick for row in range(len(kinds))]
        values = [100 * found.get(kind, 0.0) for kind in kinds]
        axes.barh(places, values, height=thick * 0.88, color=_colour(i), label=_label(name), linewidth=0)
    axes.set_yticks(range(len(kinds)), [*kinds])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of scored runs (%)")
    _legend(axes, len(shares))
    told = "; ".join(
        f"{name}: " + (", ".join(f"{kind} {100 * found[kind]:.0f} %" for kind in kinds if found.get(kind)) or "none")
        for name, found in shares.items()
    )
    return _svg(figure, f"Misses by class. {told}.")


def _point(axes: Axes, i: int, x: float, y: Interval, *, on_front: bool) -> None:
    spread = [[100 * (y.value - y.low)], [100 * (y.high - y.value)]]
    place = [x], [100 * y.value]
    axes.errorbar(*place, yerr=spread, color=_colour(i), linewidth=1.2, capsize=3, zorder=2)
    if on_front:
        axes.plot(*place, "o", markersize=15, markerfacecolor="none", markeredgecolor=MUTED, zorder=2, clip_on=False)
    axes.plot(*place, _marker(i), markersize=8, color=_colour(i), markeredgecolor=PAPER, zorder=3, clip_on=False)


def _name_points(axes: Axes, places: Mapping[str, tuple[float, float]]) -> None:
    """Write each point's name beside it, where it covers no other name and no other point, as far as that goes."""
    left = axes.transAxes.transform((0, 0))[0]
    spots = {name: axes.transData.transform(place) for name, place in places.items()}
    taken = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in spots.values()]
    for name, (x, y) in spots.items():
        wide = LETTER * len(name)
        boxes = [
            (x + right - wide, y + up, x + right, y + up + LINE_HEIGHT)
            if right < 0
            else (x + right, y + up, x + right + wide, y + up + LINE_HEIGHT)
            for right, up in OFFSETS
        ]
        hits = [sum(_overlap(box, other) for other in taken) + (OUTSIDE if box[0] < left else 0) for box in boxes]
        best = hits.index(min(hits))
        taken.append(boxes[best])
        far = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7} if OFFSETS[best][1] not in NEAR else None
        axes.annotate(
            _label(name),
            places[name],
            xytext=OFFSETS[best],
            textcoords="offset points",
            ha="right" if OFFSETS[best][0] < 0 else "left",
            color=INK,
            fontsize=9.5,
            arrowprops=far,
            zorder=4,
        )


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Of two boxes (left, bottom, right, top)."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _figure(name: str, height: float = 3.5) -> tuple[Figure, Axes]:
    """A figure in the page's colours; needs no display."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 9.5,
        "axes.edgecolor": LINE,
        "axes.labelcolor": MUTED,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": LINE,
        "grid.linewidth": 0.7,
        "xtick.color": LINE,
        "ytick.color": LINE,
        "xtick.labelcolor": MUTED,
        "ytick.labelcolor": MUTED,
        "legend.labelcolor": INK,
        "text.color": INK,
    }
    with rc_context(style):
        figure = Figure(figsize=(5.6, height), dpi=72, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot(label=name)
        axes.patch.set_alpha(0)
    return figure, axes


def _legend(axes: Axes, count: int) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=min(count, 4), frameon=False, labelcolor=INK, borderaxespad=0.2
    )


def _label(name: str) -> str:
    """A name as it stands: a dollar sign begins no formula, an underscore hides it from no legend."""
    return name.lstrip("_").replace("$", r"\$")


def _colour(i: int) -> str:
    return f"#00020{i % COLOURS}"


def _marker(i: int) -> str:
    return MARKERS[(i + i // COLOURS) % len(MARKERS)]


def _svg(figure: Figure, told: str) -> str:
    """The drawing as an `<svg>` element that tells what it shows; the same bytes for the same figures."""
    from html import escape

    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": told}):
        file = StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for placeholder, variable in PLACEHOLDERS.items():
        text = text.replace(placeholder, variable)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"(<svg [^>]*?) width=\"[^\"]*\"", r"\1", text, count=1)
    text = re.sub(r"(<svg [^>]*?) height=\"[^\"]*\"", r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(told)}" ', 1)


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names of the points (price, accuracy) that no other beats: none is as cheap and better, or as good and
    cheaper. The cheapest first.

    >>> pareto({"a": (1, 0.5), "b": (2, 0.4), "c": (3, 0.7), "d": (3, 0.6)})
    ['a', 'c']
    """
    front: list[str] = []
    for name, (_, accuracy) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1], item[0])):
        if not front or accuracy > points[front[-1]][1]:
            front.append(name)
    return front
