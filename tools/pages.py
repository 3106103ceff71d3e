# SPDX-License-Identifier: Apache-2.0
"""The Markdown pages of the tree: their headings' anchors, and whether their links lead anywhere.

The anchors are those that GitHub makes, so that a link works there; the site that tools/docs builds uses the same."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.S | re.M)
CODE = re.compile(r"(`+)(.+?)\1", re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)(?:\s+\"[^\"]*\")?\)")


def pages(root=ROOT):
    found = [*root.glob("*.md"), *root.glob("*/**/*.md")]
    return sorted(p for p in found if not {"build", ".git", "node_modules"} & set(p.relative_to(root).parts))


def slug(text, _separator="-"):
    """GitHub's name for a heading. The second argument is Python-Markdown's."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def prose(text):
    """The page without its code, line by line as long as before."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    return CODE.sub(blank, FENCE.sub(blank, text))


def anchors(text):
    seen, names = {}, set()
    without_code = FENCE.sub("", text)
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", without_code, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        name = slug(plain)
        names.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return names | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", without_code))


def links(text):
    """Targets of links and pictures that are not on the web, with their line numbers."""
    for match in LINK.finditer(prose(text)):
        if not re.match(r"[a-z]+:", match[1]):
            yield match[1], text.count("\n", 0, match.start()) + 1


def broken(root=ROOT):
    texts = {p: p.read_text(encoding="utf-8") for p in pages(root)}
    for page, text in texts.items():
        for target, line in links(text):
            path, _, anchor = target.partition("#")
            at = (page.parent / path).resolve() if path else page
            where = f"{page.relative_to(root)}:{line}: {target}"
            if not at.exists() or root not in (at, *at.parents):
                yield f"{where}: there is no such file"
            elif anchor and at in texts and anchor not in anchors(texts[at]):
                yield f"{where}: there is no such heading"
