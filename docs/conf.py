"""The configuration of the documentation site and of the man pages.

    make site       docs/ as a site, in build/site
    make manual     the man pages, in build/manual

The project's own extensions are in docs/_ext: headers.py reads the public headers, comments.py
turns their comments into reStructuredText, manual.py writes the man pages, pages.py changes the
links in Markdown documents.
"""
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
sys.path.insert(0, os.path.join(here, "_ext"))

project = "Slabyard"
author = ""
with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
    release = re.search(r"project\(slabyard VERSION ([\d.]+)", file.read()).group(1)
version = release
today = " "  # no date: the same sources give the same pages

manual = tags.has("manual")  # noqa: F821, which Sphinx defines
exclude_patterns = ["_ext", "requirements.txt"]
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# ---- the headers ----

from headers import INCLUDE, clang_args  # noqa: E402

hawkmoth_root = INCLUDE
hawkmoth_clang = []
hawkmoth_clang_c = clang_args("c")
hawkmoth_clang_cpp = clang_args("cpp")

# ---- Markdown ----

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4

if manual:
    extensions = ["myst_parser", "manual"]
    man_make_section_directory = True
    man_show_urls = False
else:
    extensions = [
        "myst_parser", "hawkmoth", "headers", "pages", "sphinx_copybutton", "sphinx_design",
    ]
    nitpicky = True
    nitpick_ignore_regex = [
        # Names of the standard libraries, and names in C++ that have no page.
        ("c:identifier", r"(u?int(8|16|32|64|ptr)?_t|s?size_t|ptrdiff_t|bool|FILE)"),
        ("cpp:identifier", r"(std|sy_|handle_key).*|slabyard|T|U|Args|Tag|Visit|key|unique|ref|deleter"),
    ]

# ---- HTML ----

html_theme = "furo"
html_title = f"Slabyard {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = os.path.join(here, "_ext", "scorer.js")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#9a4a12", "color-brand-content": "#9a4a12",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {"color-brand-primary": "#f0a35e", "color-brand-content": "#f0a35e"},
}
copybutton_exclude = ".linenos, .gp, .go"
