"""docs/security.md: the tests that it cites exist, and the daemon opens no connections."""

import ast
import re
from pathlib import Path

from fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tests", "benches")
DOCUMENT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
SOURCE = ROOT / "exporter" / "disksla"
CITED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", DOCUMENT)))

SOCKETS = {
    "tell/api/daemon_client.py": "connects to the Unix socket of the daemon",
    "base/operating_system/packets.py": "serves the clients of helpers, and connects to them",
    "clouds/ebs_statistics/client.py": "receives from the helper",
    "clouds/ebs_statistics/helper.py": "sends to the clients of the helper",
    "commands/ebs_statistics.py": "has the kind of its socket",
    "commands/open_events.py": "has the kind of its socket",
    "kernel/performance_events/helper.py": "answers the clients of the helper for events",
    "kernel/performance_events/opened.py": "receives from that helper",
    "base/operating_system/unix_socket.py": "binds Unix sockets of daemon and helper",
    "base/operating_system/systemd.py": "notifies systemd, uses sockets that it passes",
    "serve/http_server/connection.py": "binds the listen addresses, and accepts connections",
    "serve/http_server/server.py": "serves the bound sockets",
}
"""Modules that may import socket, and what for."""
CONNECT = {"connect", "connect_ex", "create_connection", "open_connection"}
CONNECTING = {
    "clouds/http_client/transport.py": {
        "commands/_advise_series.py",
        "commands/_means.py",
        "commands/detect.py",
        "commands/report.py",
    },
    "tell/api/daemon_client.py": {
        "commands/_daemon.py",
        "commands/advise.py",
        "commands/check.py",
        "commands/explain.py",
        "commands/doctor_checks/gather_facts.py",
        "tell/top/sources.py",
    },
}
"""Modules that open connections, and those that import them: commands, never the daemon.

`disksla detect` asks a provider, `report`, `advise` and `explain` a Prometheus server, and
`disksla check`, `doctor`, `explain` and `top` the daemon.
"""
LOCAL = {"base/operating_system/packets.py"}
"""Modules that connect to Unix sockets only, of which the daemon imports some."""
CLIENTS = {
    *("aiohttp", "ftplib", "http.client", "httpx", "imaplib", "poplib", "requests", "smtplib"),
    *("socketserver", "telnetlib", "urllib.request", "urllib3", "xmlrpc.client"),
}


WRITES = re.compile(
    r"\bO_(?:WRONLY|RDWR|CREAT)\b"
    r"|\.(?:write_bytes|write_text|touch|unlink|rename|mkdir|rmdir|ftruncate|truncate)\("
    r"|\b(?:mkstemp|memfd_create|posix_fallocate)\b"
    r"|\bopen\([^()]*\"[wxa]b?\""
)
"""How Python writes to a file, or creates or removes one."""


def test_every_module_that_writes_is_listed() -> None:
    section = re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)
    [written] = [part for part in section if part.startswith("What disksla writes")]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \|$", written, re.MULTILINE)
    listed = set(re.findall(r"`([\w/]+\.py)`", " ".join(rows)))
    assert {file for file in listed if not (SOURCE / file).exists()} == set()
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if WRITES.search(line) and "os.devnull" not in line
    }
    # These two do not write themselves, but have fio do it.
    assert found == listed - {"measure/fio/raw_device.py", "measure/fio/sandbox.py"}


def test_cited_tests_exist() -> None:
    for file in {file for file, _ in CITED}:
        [path] = [found for folder in FOLDERS if (found := ROOT / folder / file).exists()]
        named = {test for of, test in CITED if of == file}
        text = path.read_text(encoding="utf-8")
        assert named <= set(re.findall(r"^(?:async )?def (\w+)", text, re.MULTILINE)), file


def test_cited_fuzz_targets_exist() -> None:
    assert len(CITED) > 20
    named = {
        name
        for sentence in re.findall(r"targets? (`[^;()]*)", DOCUMENT)
        for name in re.findall(r"`([\w-]+)`", sentence)
    }
    assert named
    assert named <= TARGETS.keys()


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def called(path: Path) -> set[str]:
    return {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


def test_the_daemon_opens_no_connections() -> None:
    by_file = {str(path.relative_to(SOURCE)): imported(path) for path in SOURCE.rglob("*.py")}
    assert {file for file, names in by_file.items() if names & CLIENTS} == CONNECTING.keys()
    for file, importers in CONNECTING.items():
        module = f"disksla.{file.removesuffix('.py').replace('/', '.')}"
        assert {file for file, names in by_file.items() if module in names} == importers
    assert {file for file, names in by_file.items() if "socket" in names} <= SOCKETS.keys()
    for file in SOCKETS.keys() - CONNECTING.keys() - LOCAL - {"base/operating_system/systemd.py"}:
        assert not called(SOURCE / file) & CONNECT, file
    for file in LOCAL:
        families = re.findall(r"\bAF_\w+", (SOURCE / file).read_text(encoding="utf-8"))
        assert set(families) == {"AF_UNIX"}, file
