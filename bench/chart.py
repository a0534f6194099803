"""Pictures of what was measured: bars in groups, lines over sizes, and targets with how well they were reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.targets import Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THICKNESS = 0.82
LEGEND, TITLE = 0.55, 0.3  # inches
REACHED, MISSED = "#2a6ebb", "#c8553d"


@dataclass(frozen=True)
class Bar:
    """`series` decides the colour; `open` if the true value is known only to be larger."""

    series: str
    value: float
    label: str
    open: bool = False


@dataclass(frozen=True)
class Panel:
    """One quantity. `groups` has a row of bars for each group of the chart."""

    title: str
    groups: Sequence[Sequence[Bar]]


def draw(path: Path, title: str, names: Sequence[str], panels: Sequence[Panel], colours: dict[str, str]) -> None:
    """Draws the groups from top to bottom, each with its bars in the order given."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    heights = [max(len(panel.groups[place]) for panel in panels) for place in range(len(names))]
    with pyplot.style.context({"font.size": 9, "font.family": "DejaVu Sans", "axes.edgecolor": "#888888"}):
        figure, axes = pyplot.subplots(
            1, len(panels), sharey=True, squeeze=False, figsize=(5.6 * len(panels) + 1.2, 0.235 * sum(heights) + 0.35 * len(names) + 1.2)
        )
        for axis, panel in zip(axes[0], panels, strict=True):
            ticks = _panel(axis, panel, heights, colours)
        axes[0][0].set_yticks(ticks, names)
        axes[0][0].set_ylim(sum(heights) + len(names) - 1.5, -0.8)  # from the top down, with nothing above or below
        handles = [matplotlib.patches.Patch(color=colour, label=series) for series, colour in colours.items()]
        if any(bar.open for panel in panels for bars in panel.groups for bar in bars):
            handles.append(matplotlib.patches.Patch(facecolor="white", edgecolor="#777777", hatch="////", label="given up at the cap"))
        tall = figure.get_figheight()
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, y=1 - 0.1 / tall, ha="left", va="top")
        figure.legend(handles=handles, loc="lower center", ncol=4, frameon=False)
        figure.tight_layout(rect=(0, LEGEND / tall, 1, 1 - TITLE / tall))
        figure.savefig(path, dpi=130)
        pyplot.close(figure)


@dataclass(frozen=True)
class Lines:
    """What a quantity is at some sizes, for each series."""

    title: str
    series: Mapping[str, Mapping[int, float]]


def lines(path: Path, title: str, across: str, panels: Sequence[Lines], colours: Mapping[str, str]) -> None:
    """Draws panels beside each other, both axes logarithmic; `across` is what the sizes are of."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.style.context({"font.size": 9, "font.family": "DejaVu Sans", "axes.edgecolor": "#888888"}):
        figure, axes = pyplot.subplots(1, len(panels), squeeze=False, figsize=(4.6 * len(panels), 4))
        for axis, panel in zip(axes[0], panels, strict=True):
            for name, points in panel.series.items():
                axis.plot(list(points), list(points.values()), marker="o", color=colours[name], label=name)
            axis.set(xscale="log", yscale="log", xlabel=across)
            axis.set_title(panel.title, fontsize=10, loc="left")
            axis.grid(which="major", color="#dddddd", linewidth=0.8)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncol=len(colours), frameon=False)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
        figure.savefig(path, dpi=130)
        pyplot.close(figure)


def targets(path: Path, title: str, drawn: Sequence[Target]) -> None:
    """Draws each target as a bar from what was wanted: to the right as many times better, to the left as many times worse.

    Quantities of all kinds stand in one picture so. Where nothing was wanted, or nothing was found, there is no bar.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    margins = [target.margin or 1.0 for target in drawn]
    with pyplot.style.context({"font.size": 9, "font.family": "DejaVu Sans", "axes.edgecolor": "#888888"}):
        figure, axis = pyplot.subplots(figsize=(10, 0.27 * len(drawn) + 1.2))
        for place, (target, margin) in enumerate(zip(drawn, margins, strict=True)):
            missed = target.verdict == "MISSED"
            axis.barh(place, margin - 1, left=1, height=THICKNESS, color=MISSED if missed else REACHED)
            text, ink = f"{target.measured} ({target.wanted})", MISSED if missed else "#333333"
            axis.annotate(text, (max(margin, 1), place), (4, 0), textcoords="offset points", va="center", fontsize=8, color=ink)
        axis.axvline(1, color="#333333", linewidth=1)
        axis.set_xscale("log")
        axis.set_xlim(min(0.5, *margins) / 1.2, max(2, *margins) * 20)
        axis.xaxis.set_major_formatter("{x:,g}")
        axis.xaxis.set_minor_formatter("")
        axis.set_yticks(range(len(drawn)), [target.what for target in drawn])
        axis.set_ylim(len(drawn) - 0.4, -0.6)
        axis.set_title(f"{title}: times better than wanted", fontsize=12, fontweight="bold", loc="left", x=0)
        axis.grid(axis="x", which="major", color="#dddddd", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
        figure.tight_layout()
        figure.savefig(path, dpi=130)
        pyplot.close(figure)


def _panel(axis: Axes, panel: Panel, heights: Sequence[int], colours: dict[str, str]) -> list[float]:
    """Draws one panel; gives the middle of each group."""
    top, middles = 0.0, []
    values = [bar.value for bars in panel.groups for bar in bars]
    left, right = min(values) / 2, max(values) * 6
    for bars, height in zip(panel.groups, heights, strict=True):
        middles.append(top + (height - 1) / 2)
        for place, bar in enumerate(bars):
            colour = colours[bar.series]
            drawn = axis.barh(top + place, bar.value - left, left=left, height=THICKNESS, color=colour)
            if bar.open:
                drawn[0].set(hatch="////", edgecolor="white", linewidth=0)
            axis.annotate(bar.label, (bar.value, top + place), (3, 0), textcoords="offset points", va="center", fontsize=8, color="#333333")
        top += height + 1.0
    axis.set_xscale("log")
    axis.set_xlim(left, right)
    axis.xaxis.set_major_formatter("{x:,g}")
    axis.xaxis.set_minor_formatter("")  # on a short axis they would lie on each other
    axis.set_title(panel.title, fontsize=10, loc="left")
    axis.grid(axis="x", which="major", color="#dddddd", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    return middles
