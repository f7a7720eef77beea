"""The documentation site: ``make docs`` builds it into build/docs/html.

Sphinx' source is the whole repository, so that links between the Markdown pages of docs/, benchmarks/ and paper/ are
the same in the repository and on the site.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs" / "extensions"), str(ROOT / "benchmarks")]

from gce._utils.version import __version__  # noqa: E402

project, author, copyright = "gce", "The gce developers", "The gce developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # in docs/extensions
    "mathml",
    "benchmark_pictures",
    "own_members",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "paper/README.md",
    "paper/results/*.md",
    "campaign/*.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
]
# folders that are large to look through, and templates, which are no pages
exclude_patterns = [".git", ".nox", ".venv", "build", "data", "out", "src", "docs/_extra", "docs/_templates"]
templates_path = [str(ROOT / "docs" / "_templates")]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
html_math_renderer = "mathml"

autosummary_generate = True
autosummary_generate_overwrite = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"/plot_",
    "backreferences_dir": None,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "min_reported_time": 1,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"gce {release}"
html_static_path = ["_static"]
# the first page at the root, where people and servers look for it
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# a summary is fetched, which a browser refuses for pages that are files
html_show_search_summary = False
html_sidebars = {"docs/index": [], "docs/start": [], "CHANGELOG": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "gce", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
