"""Prometheus and VictoriaMetrics on loopback with one history, as docs/fleet.md starts them.

Addresses and files are those of the test. vmagent writes the history to both. It ends after the
present, so that rules can be evaluated on it.
"""

import json
import re
import shlex
import shutil
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from grafana.sample_history import openmetrics
from support.monitoring_stack import (
    PATIENCE_S,
    Prometheus,
    Service,
    alertmanager,
    free_port,
    running,
)
from support.waiting import eventually

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
SECTION = "\n## On other engines\n"


def blocks(language: str) -> list[str]:
    """Return the blocks of code of the section, in a language."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(SECTION)
    text = section.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def options(program: str) -> list[str]:
    """Return the options of the only documented command of a program, such as `thanos rule`."""
    words = program.split()
    [found] = [
        command[len(words) :]
        for command in (shlex.split(block.replace("\\\n", "")) for block in blocks("sh"))
        if command[: len(words)] == words
    ]
    return found


def with_values(found: list[str], values: Mapping[str, str | list[str]]) -> list[str]:
    """Return the options with other values, which are the addresses and files of a test.

    An option with a list is repeated; one with an empty value is a switch. One that is not in
    `found` is added.
    """
    kept = [option for option in found if option.partition("=")[0] not in values]
    return kept + [
        f"{name}={value}" if value else name
        for name, given in values.items()
        for value in ([given] if isinstance(given, str) else given)
    ]


PROGRAMS = ("prometheus", "prometheus-alertmanager", "victoria-metrics", "vmagent", "vmalert")
_AHEAD_S = 1200
"""The history ends so long after the present."""
_LAST_SECOND = -12
"""So that no sample is at the boundary of the range of a query at a whole minute."""
_PIECE_LINES = 20_000

Values = Mapping[str, str | list[str]]
"""Values of options; a list repeats the option."""


def missing() -> str | None:
    """Return which programs are missing; None if none is."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"NOT TESTED: {', '.join(absent)} missing (make engines)" if absent else None


class Stores(NamedTuple):
    """Stores with the same samples, the rulers of both, and the Alertmanager of these."""

    prometheus: Prometheus
    victoria: Prometheus
    vmalert: Service
    alertmanager: Service
    end_s: int
    """Unix time of the end of the history."""


class _Programs:
    """Starts programs in a directory; all end with the stack."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self._stack, self._home = stack, home

    def start(self, name: str, values: Values, port: int) -> None:
        """Start a program with its documented options, and with other values of some."""
        self.run([name, *with_values(options(name), dict(values))], port)

    def run(self, command: list[str], port: int) -> None:
        """Start a program until the end of the stack."""
        name = Path(command[0]).name
        service = Service(f"127.0.0.1:{port}")
        log = self._home / f"{name}-{port}.log"
        self._stack.enter_context(running(command, service, log))

    def write(self, name: str, content: object) -> str:
        """Write a file of JSON, which is YAML too; return its path."""
        file = self._home / name
        file.write_text(json.dumps(content))
        return str(file)


@contextmanager
def stores_in(home: Path, rules: Sequence[Path]) -> Iterator[Stores]:
    """Run everything, and write the history."""
    with ExitStack() as stack:
        programs = _Programs(stack, home)
        prometheus, victoria, agent = (Prometheus(f"127.0.0.1:{free_port()}") for _ in range(3))
        silent = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}
        config = Path(programs.write("alertmanager.json", silent))
        pager = stack.enter_context(alertmanager(config, home / "alertmanager"))
        files = [str(file) for file in rules]
        _start_prometheus(programs, home, prometheus, pager, files)
        programs.start(
            "victoria-metrics",
            {
                "-storageDataPath": str(home / "victoria"),
                "-dedup.minScrapeInterval": "2s",  # the interval of the rules of the test
                "-httpListenAddr": victoria.address,
            },
            _port(victoria),
        )
        urls = [f"http://{each.address}/api/v1/write" for each in (prometheus, victoria)]
        programs.start(
            "vmagent",
            {
                "-promscrape.config": programs.write("scrape.yml", {}),
                "-remoteWrite.tmpDataPath": str(home / "buffer"),
                "-remoteWrite.url": urls,
                "-httpListenAddr": agent.address,
            },
            _port(agent),
        )
        end_s = int(time.time()) // 60 * 60 + _AHEAD_S + _LAST_SECOND
        _write(agent, end_s)
        for store in (prometheus, victoria):
            assert eventually(lambda store=store: _has_all(store, end_s), PATIENCE_S, 0.5)  # type: ignore[misc]
        rulers = []
        for _ in range(2):
            rulers.append(Service(f"127.0.0.1:{free_port()}"))
            at = f"http://{victoria.address}"
            values: Values = {
                "-rule": files,
                **dict.fromkeys(("-datasource.url", "-remoteWrite.url", "-remoteRead.url"), at),
                "-notifier.url": f"http://{pager.address}",
                "-httpListenAddr": rulers[-1].address,
            }
            programs.start("vmalert", values, _port(rulers[-1]))
        yield Stores(prometheus, victoria, rulers[0], pager, end_s)


def _port(service: Service) -> int:
    return int(service.address.rpartition(":")[2])


def _start_prometheus(
    programs: _Programs, home: Path, prometheus: Prometheus, pager: Service, rules: list[str]
) -> None:
    config = {
        "rule_files": rules,
        "storage": {"tsdb": {"out_of_order_time_window": "2h"}},  # vmagent does not keep the order
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [pager.address]}]}]},
    }
    command = [
        "prometheus",
        f"--config.file={programs.write('prometheus.json', config)}",
        f"--storage.tsdb.path={home / 'prometheus'}",
        f"--web.listen-address={prometheus.address}",
        "--web.enable-remote-write-receiver",
        *(f"--storage.tsdb.{each}-block-duration=4d" for each in ("min", "max")),
    ]
    programs.run(command, _port(prometheus))


def _write(agent: Service, end_s: int) -> None:
    """Write the history, in order of time."""
    lines = sorted(openmetrics(end_s).splitlines()[:-1], key=lambda line: line.rpartition(" ")[2])
    for begin in range(0, len(lines), _PIECE_LINES):
        text = "".join(f"{line}000\n" for line in lines[begin : begin + _PIECE_LINES])
        url = f"http://{agent.address}/api/v1/import/prometheus"
        with urllib.request.urlopen(url, text.encode(), timeout=PATIENCE_S):
            pass


def _has_all(store: Prometheus, end_s: int) -> bool:
    answer = store.get("/api/v1/query", query="count(up)", time=str(end_s))["data"]["result"]
    last = store.get("/api/v1/query", query="max(timestamp(up))", time=str(end_s))
    found = last["data"]["result"]
    return bool(answer and found) and float(found[0]["value"][1]) == end_s
