"""Pages that are scraped, rules that are evaluated at once, and results of dashboards."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml

from grafana.dashboard_lint import Target, filled_in
from render import OUT
from support.monitoring_stack import Prometheus, answering


def fast_rules(file: str = "prometheus_rules.yaml") -> str:
    """Return rules with an evaluation interval of one second."""
    rules = yaml.safe_load((OUT / file).read_text(encoding="utf-8"))
    for group in rules["groups"]:
        group["interval"] = "1s"
    return yaml.safe_dump(rules)


def result(
    server: Prometheus, target: Target, values: Mapping[str, str], span_s: float = 1800
) -> list[dict[str, Any]]:
    """Return what the query of a panel finds, with these values of the variables."""
    expr = filled_in(target["expr"], values)
    if target["instant"]:
        return server.query(expr)
    now_s = time.time()
    span = {"start": str(now_s - span_s), "end": str(now_s), "step": "15"}
    found: list[dict[str, Any]] = server.get("/api/v1/query_range", query=expr, **span)["data"][
        "result"
    ]
    return found


@contextmanager
def served(pages: Mapping[int, str]) -> Iterator[str]:
    """Serve the pages of a daemon that has just started, each after so many seconds."""
    begin_s = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            elapsed_s = max(time.monotonic() - begin_s, min(pages))
            body = pages[max(each for each in pages if each <= elapsed_s)].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with answering(Handler) as address:
        yield address
