"""Draws what `make bench-growth` measured: growth.py RESULT.json PICTURE.png"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


def panel(ax, axis):
    """CPU of core and generator against the axis, and the generator's memory on the right."""
    x = [p["x"] for p in axis["points"]]
    ax.plot(x, [p["core_cpu_s"] for p in axis["points"]], "o-", label="core: CPU s")
    ax.plot(x, [p["generator_cpu_s"] for p in axis["points"]], "s-", label="generator: CPU s")
    ax.set_xlabel(axis["name"])
    ax.set_ylabel("CPU, s")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    right = ax.twinx()
    right.plot(x, [p["generator_mb"] for p in axis["points"]], "^:", color="tab:green", label="generator: MB")
    right.plot(x, [p["peak_mb"] for p in axis["points"]], "v:", color="tab:red", label="all processes, peak: MB")
    right.set_ylim(bottom=0)
    right.set_ylabel("memory, MB")
    lines = ax.get_lines() + right.get_lines()
    ax.legend(lines, [line.get_label() for line in lines], fontsize=7)


def main():
    with open(sys.argv[1]) as f:
        axes = [a for a in json.load(f) if len(a["points"]) > 1]
    figure, panels = plt.subplots(2, 2, figsize=(12, 8))
    for ax, axis in zip(panels.flat, axes):
        panel(ax, axis)
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=80)


main()
