"""What MkDocs calls while it builds the site (mkdocs.yml).

The site has the pages below docs/ and the READMEs of plugins and examples, which stay where they
are: they get addresses below code/. A link to another file of the tree leads to the repository.
"""

import glob
import os
import posixpath
import re

from mkdocs.structure.files import File

CODE = "code/"  # below it are pages from outside of docs/
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def outside():
    """Returns the paths of pages outside of docs/, by the root of the tree."""
    found = [p for pattern in ("examples/*/README.md", "plugins/*/*/README.md") for p in glob.glob(pattern, root_dir=ROOT)]
    return sorted(found) + [p for p in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") if os.path.exists(os.path.join(ROOT, p))]


def on_config(config):
    """Puts pages in the place of @FOLDER in the navigation."""
    config["nav"] = [expand(item) for item in config["nav"]] + [{"Project": [{title: CODE + p} for p, title in
        (("CONTRIBUTING.md", "Contributing"), ("SECURITY.md", "Security"), ("CHANGELOG.md", "Changes"))]}]
    return config


def expand(item):
    if not isinstance(item, dict):
        return item
    (title, inside), = item.items()
    if not isinstance(inside, list):
        return item
    all = []
    for one in inside:
        if isinstance(one, str) and one.startswith("@"):
            all += listed(one[1:])
        else:
            all.append(expand(one))
    return {title: all}


def listed(folder):
    if folder == "decisions":
        return sorted("decisions/" + f for f in os.listdir(os.path.join(ROOT, "docs", folder)) if f.endswith(".md"))
    return [{posixpath.dirname(p).split("/", 1)[1]: CODE + p} for p in outside() if p.startswith(folder + "/")]


def on_files(files, config):
    for path in outside():
        files.append(File.generated(config, CODE + path, abs_src_path=os.path.join(ROOT, path)))
    return files


LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^ {0,3}(```|~~~)")


def on_page_markdown(markdown, page, config, files):
    """Lets links of the tree lead to pages of the site, or to the repository."""
    lines, fenced = [], False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            line = LINK.sub(lambda m: m[1] + leads(m[2], page.file.src_uri, config["repo_url"]) + m[3], line)
        lines.append(line)
    return "\n".join(lines)


def leads(link, page, repository):
    """Returns where a link of a page leads to in the site."""
    target, hash, anchor = link.partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return link
    here = page.removeprefix(CODE) if page.startswith(CODE) else "docs/" + page
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if not os.path.exists(os.path.join(ROOT, path)):
        return link  # MkDocs says so
    pages = outside()
    if path.startswith("docs/") and not os.path.isdir(os.path.join(ROOT, path)):
        to = path.removeprefix("docs/")
    elif path == "README.md":
        to = "index.md"
    elif path in pages:
        to = CODE + path
    elif posixpath.join(path, "README.md") in pages:
        to = CODE + posixpath.join(path, "README.md")
    else:
        kind = "tree" if os.path.isdir(os.path.join(ROOT, path)) else "blob"
        return f"{repository}/{kind}/main/{path}{hash}{anchor}"
    return posixpath.relpath(to, posixpath.dirname(page)) + hash + anchor
