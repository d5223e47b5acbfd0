"""The documentation's build: `make docs`. Nothing is fetched, neither while building nor while
reading."""

from __future__ import annotations

import sys
from pathlib import Path

from graphkeel import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "graphkeel"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "keel_architecture",
    "keel_commands",
    "keel_docstrings",
    "keel_examples",
    "keel_math",
]
exclude_patterns = ["_build", "compatibility.md"]  # a part of own-model.md
nitpicky = True

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"graphkeel {release}"
html_math_renderer = "mathml"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "undoc-members": True}
napoleon_use_rtype = False
napoleon_use_ivar = True

# Names of other projects: their documentation is not fetched, so they cannot be linked to.
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(torch|numpy|np|torch_geometric|nn|scipy|sparse|sklearn|fractions|pathlib|collections|argparse)\..*",
    ),
    (
        r"py:.*",
        r"(Tensor|Data|NDArray|Array|Path|Fraction|Callable|Iterator|Sequence|Any|Protocol|StrEnum|Enum|Source|Floats|Factor|Link)",
    ),
    (r"py:.*", r"(enum\..*|Module|typing\..*)"),
    (r"py:class", r"graphkeel\.\w+\.[\w.]+"),  # types of private modules, which have no page
    (r"py:.*", r"(optional|callable|iterable|ndarray|float64|shape.*|dtype.*)"),
]
