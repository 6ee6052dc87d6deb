"""A page as HTML: what it consists of. It has to be well-formed and self-contained."""

from html.parser import HTMLParser

VOID = {"meta", "rect", "line", "circle", "path", "polygon", "polyline"}
LOADING = {"link", "img", "iframe"}
Attributes = dict[str, str | None]


class HtmlPage(HTMLParser):
    """Reads a page; fails on elements that are not closed, load something or have a style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.rows: list[list[str]] = []
        """Texts of the cells of all tables, with single spaces."""
        self.texts: list[tuple[str, str]] = []
        """Each text with the element that it is in."""
        self._open: list[str] = []
        page.encode()
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert tag not in LOADING
        assert not {"src", "style"} & named.keys()
        assert not any(name.startswith("on") for name in named)
        self.elements.append((tag, named))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))
        if {"th", "td"} & set(self._open):
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())

    @property
    def text(self) -> str:
        """Return the text that is shown, with single spaces."""
        shown = (data for tag, data in self.texts if tag not in {"style", "script"})
        return " ".join(" ".join(shown).split())

    @property
    def tags(self) -> set[str]:
        """Return the names of all elements."""
        return {tag for tag, _ in self.elements}

    def of(self, tag: str) -> list[Attributes]:
        """Return the attributes of all elements of a name."""
        return [named for each, named in self.elements if each == tag]
