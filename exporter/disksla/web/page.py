"""What the pages of the daemon have in common: style, script, header, tables."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from disksla.html import HtmlPage, escape_html
from disksla.web.charts import CHART_STYLE

_STYLE = """
header { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; align-items: baseline;
  margin-bottom: 0.75rem; }
h1 small, h2 small, header small { color: var(--soft); font-weight: normal;
  font-size: 0.8125rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
.alarm { color: var(--bad); font-weight: 600; }
.badge { display: inline-block; border: 1px solid var(--line); border-radius: 1rem;
  padding: 0 0.625rem; font-size: 0.8125rem; font-weight: 600; white-space: nowrap; }
.badge i { display: inline-block; width: 0.625rem; height: 0.625rem; border-radius: 50%;
  margin-right: 0.375rem; background: var(--verdict); forced-color-adjust: none; }
article { background: var(--sheet); border: 1px solid var(--line); border-radius: 0.375rem;
  padding: 0.625rem 0.875rem; break-inside: avoid; min-width: 0; }
article h2 { margin: 0 0 0.25rem; }
.cards { display: grid; gap: 0.75rem; margin: 0.75rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.brief { grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr));
  gap: 0.25rem 1.5rem; margin: 0.75rem 0; }
dt { color: var(--soft); font-size: 0.8125rem; }
dd { margin: 0; }
table { width: 100%; margin: 1rem 0; border-collapse: collapse; background: var(--sheet);
  border: 1px solid var(--line); border-radius: 0.375rem; }
th, td { padding: 0.5rem; text-align: left; vertical-align: top;
  border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-size: 0.8125rem; font-weight: 600;
  white-space: nowrap; }
td span, th span { display: block; }
tbody { font-size: 0.875rem; font-variant-numeric: tabular-nums; }
tbody th { min-width: 6.5rem; }
tbody th, td:nth-child(2) { overflow-wrap: anywhere; }
.rate { white-space: nowrap; }
meter { width: 4rem; height: 0.75rem; vertical-align: middle; }
@media print {
  .cards { display: block; }
  article { margin-bottom: 0.5rem; }
  .charts, dl { break-inside: avoid; }
  .charts { grid-template-columns: repeat(5, 1fr); }
  tbody, thead th { font-size: 6.5pt; }
  th, td { padding: 0.1875rem; }
  td .soft, th .soft { font-size: inherit; }
  tbody th { min-width: 0; }
  .rate { white-space: normal; }
  meter { display: none; }
}
@media screen and (max-width: 60rem) {
  body { padding: 0.75rem; }
  table, tbody, tr, th, td { display: block; width: 100%; }
  table { background: none; border: 0; }
  thead { display: none; }
  tr { background: var(--sheet); border: 1px solid var(--line); border-radius: 0.375rem;
    margin-bottom: 0.75rem; padding: 0.375rem 0; }
  th, td { border: 0; padding: 0.25rem 0.75rem; }
  td[data-label] { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: 0.5rem; }
  td::before { content: attr(data-label); color: var(--soft); font-size: 0.8125rem; }
  .rate { white-space: normal; }
}
"""

_REFRESH_S = 5
_SCRIPT = f"""
const key = node => node.nodeName + node.dataset?.key;
function update(old, fresh) {{
  if (old.nodeType === Node.TEXT_NODE) {{
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }}
  for (const {{name, value}} of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const {{name}} of [...old.attributes])
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, index) => {{
    const rest = [...old.childNodes].slice(index);
    const same = rest.find(each => key(each) === key(node));
    if (same) update(same, node);
    if (rest[0] !== (same ?? node)) old.insertBefore(same ?? node, rest[0] ?? null);
  }});
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}}
let loaded = new Date();
setInterval(async () => {{
  if (document.hidden || String(getSelection())) return;
  let problem = "";
  try {{
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`${{answer.status}} ${{answer.statusText}}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement;
    update(document.querySelector("main"), page.querySelector("main"));
    if (focused.isConnected) focused.focus({{preventScroll: true}});
    document.title = page.title;
    loaded = new Date();
  }} catch (error) {{
    problem = `Not updated since ${{loaded.toLocaleTimeString()}}: ${{error.message}}`;
    document.title = "not updated: " + document.title.replace(/^not updated: /, "");
  }}
  const note = document.querySelector("#problem");
  if (note.textContent !== problem) note.textContent = problem;
}}, {_REFRESH_S * 1000});
"""
"""Changes what is different in the content, and nothing else: focus, selection, scrolling and
the place of a screen reader stay. Elements that change their order have a `data-key`. Without
scripts, the page is as it was when it was loaded."""

_PAGE = HtmlPage(f"{_STYLE}{CHART_STYLE}", _SCRIPT)
CONTENT_SECURITY_POLICY = f"{_PAGE.policy}; frame-ancestors 'none'"


DASH = "–"  # noqa: RUF001 -- tables use an en dash for an absent value


def table(columns: Iterable[str], rows: Iterable[str]) -> str:
    """Return a table of rows that `table_row` made."""
    headings = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(rows)
    return f"<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def table_row(columns: Sequence[str], name: str, cells: Iterable[str]) -> str:
    """Return a row of a table, of which `name` is the first cell; all cells are HTML."""
    rest = "\n".join(
        f'<td data-label="{column}"><div>{cell}</div></td>'
        for column, cell in zip(columns[1:], cells, strict=True)
    )
    return f'<tr><th scope="row">{name}</th>\n{rest}</tr>'


class Frame(NamedTuple):
    """What is around the content of each page."""

    host: str
    """Name of the machine."""
    version: str
    telemetry_path: str

    def page(self, title: str, main: str) -> str:
        """Return a page; `title` is escaped, `main` is HTML."""
        metrics = escape_html(self.telemetry_path)
        body = f"""<header>
<strong>{escape_html(self.host)}</strong>
<nav aria-label="Pages"><a href="/">Disks</a> <a href="{metrics}">{metrics}</a>
<a href="/runbook">Runbook</a> <a href="/-/healthy">/-/healthy</a>
<a href="/-/ready">/-/ready</a></nav>
<small>disksla {escape_html(self.version)}</small>
<strong id="problem" class="alarm" role="status"></strong>
</header>
<main>
{main}
</main>"""
        return _PAGE.page(f"{title}: disksla", body)
