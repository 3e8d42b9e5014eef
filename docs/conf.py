"""Configuration of the documentation site: ``make docs`` builds it, without any access to the network."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import simtree

sys.path.insert(0, str(Path(__file__).parent))  # example_order

project = "simtree"
author = "The simtree developers"
project_copyright = "the simtree developers, BSD-3-Clause"
release = version = simtree.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "results", "auto_examples/*.ipynb"]
exclude_patterns += ["mathjax/[!ot]*", "mathjax/tex-chtml-*", "mathjax/tex-mml-*", "mathjax/tex-svg*", "mathjax/output/svg*"]
templates_path = ["_templates"]
default_role = "py:obj"

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# API reference
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the Parameters section says them, in words
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_use_plots = False

# Example gallery
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "within_subsection_order": "example_order.position",
    "doc_module": ("simtree",),
    "backreferences_dir": "api/generated/examples",
    "reference_url": {"simtree": None},
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "run_stale_examples": True,  # an example depends on the whole library, not on its own file alone
    "write_computation_times": False,
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "simtree"
# MathJax is a part of the site, not a link to a server: the package sphinx-mathjax-offline has its files.
mathjax_files = Path(str(importlib.util.find_spec("sphinx-mathjax-offline").origin)).parent / "static"
mathjax_path = "mathjax/tex-chtml.js"
html_static_path = ["_static", str(mathjax_files)]
html_css_files = ["simtree.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "simtree"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "install": [], "glossary": [], "changelog": [], "contributing": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# Pages whose text is a file beside the README.
ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "changelog": "CHANGELOG.md",
    "code_of_conduct": "CODE_OF_CONDUCT.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
}


def read_source(app: object, docname: str, source: list[str]) -> None:
    """Show files beside the README as pages, and make links to them, and from them, right for the site."""
    file = ROOT / ROOT_PAGES.get(docname, "?")
    to_root, to_docs = "../" * (docname.count("/") + 1), "../" * docname.count("/")
    if file.is_file():
        source[0] = file.read_text(encoding="utf-8").replace("](docs/", "](").replace("](LICENSE)", "](../LICENSE)")
        to_root = ""
    if docname == "index":  # one example for both front pages
        section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Ten lines\n")[1].split("\n## ")[0]
        source[0] = source[0].replace("<!-- Ten lines of the README -->", section)
    for page, name in ROOT_PAGES.items():
        source[0] = source[0].replace(f"]({to_root}{name}", f"]({to_docs}{page}.md")
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # a doctest ends with an empty line, which is not shown


def skip_member(app: object, what: str, name: str, obj: Any, skip: bool, options: object) -> bool | None:
    """Leave out what a class inherits from elsewhere: scikit-learn, tuples, exceptions."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    owner = getattr(obj, "__objclass__", None)
    module = str(getattr(owner or obj, "__module__", None) or "simtree")
    return True if module.split(".")[0] in ("builtins", "sklearn", "abc", "typing") else None


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", read_source)
