"""Pages of the gallery: each runs as it is, without a warning, and draws something."""

import ast
import runpy
from pathlib import Path

import matplotlib
import pytest

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
PAGES = sorted(GALLERY.glob("plot_*.py"))
#: Pages that take more than three seconds: they run where the documentation is built, and are only compiled here.
IN_THE_BUILD = {
    "plot_categories_and_dates",
    "plot_checkpoints",
    "plot_figure1",
    "plot_many_machines",
    "plot_monotone_prices",
    "plot_quantiles",
    "plot_stacking",
}
HERE = [path for path in PAGES if path.stem not in IN_THE_BUILD]


def test_the_list_of_slow_pages_names_pages():
    assert len(PAGES) >= 12
    assert {path.stem for path in PAGES} >= IN_THE_BUILD


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_a_heading_and_is_short(path):
    page = ast.parse(path.read_text(), str(path))
    compile(page, str(path), "exec")
    title, line = ast.get_docstring(page).splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)
    code = [each for each in path.read_text().splitlines() if each.strip() and not each.startswith("#")]
    assert len(code) <= 90


@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_a_page_runs_and_draws(path, monkeypatch, tmp_path):
    # where a display is found, showing figures without one is a warning
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.chdir(tmp_path)
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    try:
        runpy.run_path(str(path), run_name="__main__")
        drawn = [plt.figure(number) for number in plt.get_fignums()]
        assert drawn
        assert all(ax.has_data() for figure in drawn for ax in figure.axes)
    finally:
        plt.close("all")
        matplotlib.use(before)
