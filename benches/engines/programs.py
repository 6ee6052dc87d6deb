"""Prometheus, Thanos and VictoriaMetrics on loopback, with the options of docs/fleet.md.

Addresses and files are those of the test. The heads of the TSDBs span four days: the history of a
test is a day long, and ends after the present, so that rules can be evaluated on it.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import pytest

from engines.documented import options, with_values
from support.monitoring_stack import Prometheus, Service, alertmanager, free_port, running

THANOS = Path(__file__).resolve().parents[2] / ".cache" / "engines" / "thanos" / "bin" / "thanos"
PROGRAMS = ("prometheus", "promtool", "victoria-metrics", "vmagent", "vmalert")
_LONG_HEAD = {"min-block-duration": "4d", "max-block-duration": "4d"}


def missing() -> str | None:
    """Return which programs are missing; None if none is."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    absent += [] if THANOS.exists() else ["thanos"]
    return f"NOT TESTED: {', '.join(absent)} missing (make engines)" if absent else None


needs_engines = pytest.mark.skipif(missing() is not None, reason=missing() or "none is missing")


Values = dict[str, str | list[str]]
"""Values of options; an empty one is a switch, and a list repeats the option."""


class Store(NamedTuple):
    """A running program that takes and returns samples."""

    api: Prometheus
    write_url: str
    process: "Popen[bytes]"


def local() -> str:
    """Return an address that is free."""
    return f"127.0.0.1:{free_port()}"


class Programs:
    """Starts programs in a directory; all end with the stack."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self.home = home
        self._stack = stack

    def prometheus(self, name: str, config: object, address: str | None = None) -> Store:
        """Run Prometheus that takes remote write."""
        address = address or local()
        file = self.write(f"{name}.json", config)
        api = Prometheus(address)
        command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self.home / name}",
            f"--web.listen-address={address}",
            "--web.enable-remote-write-receiver",
            *(f"--storage.tsdb.{key}={value}" for key, value in _LONG_HEAD.items()),
        ]
        return Store(api, f"http://{address}/api/v1/write", self._run(name, command, api))

    def receiver(
        self, name: str, grpc: str, http: str, write: str, hashring: Path
    ) -> Popen[bytes]:
        """Run Thanos Receive, as one of the hashring."""
        values: Values = {
            "--label": f'receiver="{name}"',
            "--tsdb.path": str(self.home / name),
            "--receive.hashrings-file": str(hashring),
            "--receive.local-endpoint": grpc,
            "--grpc-address": grpc,
            "--http-address": http,
            "--remote-write.address": write,
            "--receive.capnproto-address": local(),
            "--grpc-grace-period": "1s",
            "--http-grace-period": "1s",
            **{f"--tsdb.{key}": value for key, value in _LONG_HEAD.items()},
        }
        return self._thanos("receive", name, values, Service(http))

    def query(
        self, name: str, endpoints: Sequence[str], more: Mapping[str, str] | None = None
    ) -> Prometheus:
        """Run Thanos Query over stores, perhaps with more options."""
        http = local()
        values: Values = {
            "--endpoint": list(endpoints),
            "--grpc-address": local(),
            "--http-address": http,
            "--grpc-grace-period": "1s",
            "--http-grace-period": "1s",
            **(more or {}),
        }
        api = Prometheus(http)
        self._thanos("query", name, values, api)
        return api

    def ruler(
        self, name: str, grpc: str, query: str, alertmanager: str, rules: Sequence[Path]
    ) -> Service:
        """Run Thanos Rule over Thanos Query."""
        http = local()
        values: Values = {
            "--label": f'replica="{name}"',
            "--data-dir": str(self.home / name),
            "--rule-file": [str(file) for file in rules],
            "--query": query,
            "--alertmanagers.url": f"http://{alertmanager}",
            "--grpc-address": grpc,
            "--http-address": http,
            "--grpc-grace-period": "1s",
            "--http-grace-period": "1s",
        }
        api = Service(http)
        self._thanos("rule", name, values, api)
        return api

    def sidecar(self, name: str, prometheus: str) -> str:
        """Run a sidecar beside the Prometheus server `name`; return its address of gRPC."""
        grpc, http = local(), local()
        values: Values = {
            "--tsdb.path": str(self.home / name),
            "--prometheus.url": f"http://{prometheus}",
            "--grpc-address": grpc,
            "--http-address": http,
            "--grpc-grace-period": "1s",
            "--http-grace-period": "1s",
        }
        self._thanos("sidecar", f"{name}-sidecar", values, Service(http))
        return grpc

    def victoria(self, name: str, more: Mapping[str, str] | None = None) -> Store:
        """Run VictoriaMetrics, perhaps with other options."""
        own = {"-storageDataPath": str(self.home / name), "-httpListenAddr": local()}
        values: Values = {**own, **(more or {})}
        address = str(values["-httpListenAddr"])
        api = Prometheus(address)
        process = self._run(name, _command("victoria-metrics", values), api)
        return Store(api, f"http://{address}/api/v1/write", process)

    def vmagent(self, name: str, scrape: object, urls: Sequence[str]) -> Popen[bytes]:
        """Run vmagent, which scrapes and writes to stores."""
        address = local()
        values: Values = {
            "-promscrape.config": str(self.write(f"{name}.yml", scrape)),
            "-remoteWrite.tmpDataPath": str(self.home / f"{name}-buffer"),
            "-remoteWrite.url": list(urls),
            "-httpListenAddr": address,
        }
        return self._run(name, _command("vmagent", values), Service(address))

    def vmalert(self, name: str, store: str, alertmanager: str, rules: Sequence[Path]) -> Service:
        """Run vmalert on VictoriaMetrics."""
        address = local()
        values: Values = {
            "-rule": [str(file) for file in rules],
            "-datasource.url": f"http://{store}",
            "-remoteWrite.url": f"http://{store}",
            "-remoteRead.url": f"http://{store}",
            "-notifier.url": f"http://{alertmanager}",
            "-httpListenAddr": address,
        }
        api = Service(address)
        self._run(name, _command("vmalert", values), api)
        return api

    def alertmanager(self) -> Service:
        """Run Alertmanager without receivers of notifications."""
        silent = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}
        config = self.write("alertmanager.json", silent)
        return self._stack.enter_context(alertmanager(config, self.home / "alertmanager"))

    def write(self, name: str, content: object) -> Path:
        """Write a file of JSON, which is YAML too."""
        file = self.home / name
        file.write_text(json.dumps(content))
        return file

    def _thanos(self, part: str, name: str, values: Values, service: Service) -> Popen[bytes]:
        command = [str(THANOS), part, *with_values(options(f"thanos {part}"), values)]
        return self._run(name, command, service)

    def _run(self, name: str, command: list[str], service: Service) -> Popen[bytes]:
        log = self.home / f"{name}.log"
        return self._stack.enter_context(running(command, service, log))


def _command(program: str, values: Values) -> list[str]:
    return [program, *with_values(options(program), values)]
