"""The additions to a page from the repository's address: the theme's buttons, and links on the names of files.

The address is ``repository.url`` in ``_config.yml``. Where it is empty, nothing of this appears; a downloaded notebook
then begins with a note that it needs a clone. A file's name in the text, such as ``kernels/float4/copy/01_scalar.cu``,
becomes a link here; elements with ``data-file="kernels/..."`` in the output of a cell are linked by ``files.js``, which
finds the address in ``<meta name="rl-files">``.
"""

from __future__ import annotations

import json
import posixpath
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform

COLAB = "https://colab.research.google.com"
#: The address of a file in the repository, by host.
FILES = {"github": "{url}/blob/{branch}/", "gitlab": "{url}/-/blob/{branch}/", "bitbucket": "{url}/src/{branch}/"}
#: The hosts for which the theme can make a link that opens an issue.
ISSUES = ("github", "gitlab")
#: The folders and files of the repository that a text may name.
NAMED = ("book/", "climb/", "kernels/", "records/", "tests/", "ARCHITECTURE.md", "Makefile", "README.md")
NOTE = (
    "This notebook is part of a repository, and needs its folders `climb/` and `kernels/`: put it into the folder "
    "`book/` of a clone. The book was built without the address of the repository, so it cannot be installed from here."
)


def files_address(options: dict[str, Any]) -> str:
    """The address to which a file's path is appended, or "" where there is none."""
    url = (options.get("repository_url") or "").strip("/")
    host = _host(options)
    if not url or host not in FILES:
        return ""
    folder = (options.get("path_to_docs") or "").strip("/")
    start = FILES[host].format(url=url, branch=options.get("repository_branch") or "main")
    return start + (folder + "/" if folder else "")


def use_address(app: Sphinx, config: Config) -> None:
    """Switch on the theme's buttons that the repository's host supports."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        return
    host = _host(options)
    options |= {
        "use_repository_button": True,
        "use_edit_page_button": True,
        "use_issues_button": host in ISSUES,
    }
    if host == "github":  # Colab opens notebooks from GitHub only
        options["launch_buttons"] = {"colab_url": COLAB}
    app.add_js_file("files.js", loading_method="defer")


def add_meta(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Tell the page's scripts where the files are."""
    if address := files_address(app.config.html_theme_options):
        tag = f'<meta name="rl-files" content="{escape(address)}" />\n'
        context["metatags"] = context.get("metatags", "") + tag


class FileLinks(SphinxPostTransform):
    """Make each name of a file of the repository a link to it."""

    default_priority = 600
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        address = files_address(self.config.html_theme_options)
        for literal in list(self.document.findall(nodes.literal)) if address else []:
            path = literal.astext()
            if _is_named(path, Path(self.env.srcdir)) and not isinstance(literal.parent, nodes.reference):
                link = nodes.reference("", "", internal=False, refuri=address + path)
                literal.replace_self(link)
                link += literal


def note_downloads(app: Sphinx, failure: Exception | None) -> None:
    """Without an address, say at the top of each notebook to download what it needs."""
    if failure or app.builder.name != "html" or files_address(app.config.html_theme_options):
        return
    for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        note = {"cell_type": "markdown", "id": "needs-a-clone", "metadata": {}, "source": [NOTE]}
        if any(cell["cell_type"] == "code" for cell in notebook["cells"]):
            notebook["cells"].insert(0, note)
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _host(options: dict[str, Any]) -> str:
    """The host as the theme calls it, or "" for one that it does not know."""
    url = options.get("repository_url") or ""
    return options.get("repository_provider") or next((host for host in FILES if f"{host}." in url), "")


def _is_named(path: str, root: Path) -> bool:
    if not path.startswith(NAMED) or posixpath.normpath(path) != path.rstrip("/"):
        return False
    return (root / path).exists()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", use_address)
    app.connect("html-page-context", add_meta)
    app.connect("build-finished", note_downloads)
    app.add_post_transform(FileLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
