"""Sphinx for the pages that `tools/make_site.py` puts together: `make docs`."""

import re

import contactdynamics

project, author = "contactdynamics", "The contactdynamics developers"
version = release = contactdynamics.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["images/**.md"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the log of changes begins with its second level
html_theme = "furo"
html_title = "contactdynamics"
html_extra_path = ["_extra"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = False
html_show_search_summary = False  # would be fetched, which a page from disk may not
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
python_maximum_signature_line_length = 80


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text with `names` in backticks: nothing else in them is meant as markup."""
    if lines and lines[0].startswith("Alias for field number"):  # of a named tuple, from Python itself
        lines.clear()
    for k, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(``[^`]*``|`[^`]*`)", line)
        for i, part in enumerate(parts):
            if part.startswith("`"):
                parts[i] = "``" + (part.strip("`") or " ") + "``"
            else:
                parts[i] = re.sub(r"([*|\\])", r"\\\1", re.sub(r"(\w)_(?=\W|$)", r"\1\\_", part)).replace(
                    "\\\\_", "\\_"
                )
        lines[k] = "".join(parts)


def setup(app):
    """Take the docstrings as they are written."""
    app.connect("autodoc-process-docstring", _plain)
