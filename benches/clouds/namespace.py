"""A network of its own, in which the metadata addresses of clouds are those of this machine."""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

METADATA = "169.254.169.254"
ADDRESSES = (METADATA, "100.100.100.200")
NEEDED = ("unshare", "nsenter", "ip")
PATIENCE_S = 180.0
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Ended(NamedTuple):
    """What a run of `disksla detect` left."""

    status: int
    file: dict[str, Any]
    output: str
    """Everything that it printed."""

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Source and reason of each problem."""
        return [(each["source"], each["reason"]) for each in self.file["problems"]]


class Namespace:
    """A network namespace that ends with its process: nothing is left behind."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def listen(self, port: int, address: str = METADATA) -> socket.socket:
        """Return a socket that listens in the namespace, for a server in this process."""
        made: list[socket.socket | Exception] = []

        def make() -> None:  # setns(2) moves one thread, which ends here
            try:
                with Path(f"/proc/{self.process.pid}/ns/net").open("rb") as file:
                    status = _LIBC.setns(file.fileno(), _CLONE_NEWNET)
                assert status == 0, "setns"
                made.append(socket.create_server((address, port)))
            except (AssertionError, OSError) as error:
                made.append(error)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        [result] = made
        if isinstance(result, Exception):
            raise result
        return result

    def inside(self, *command: str | Path) -> list[str]:
        """Return the command that runs a program in the namespace."""
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *map(str, command)]

    def detect(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ended:
        """Run `disksla detect` in the namespace and return what it found and printed."""
        run = subprocess.run(
            self.inside(sys.executable, "-m", "disksla", "detect", *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env=clean_environment() | dict(env or {}),
        )
        words = [str(word) for word in arguments]
        written = (
            Path(words[words.index("--output") + 1]).read_text(encoding="utf-8")
            if "--output" in words
            else run.stdout
        )
        file = json.loads(written) if run.returncode < 2 else {}
        return Ended(run.returncode, file, run.stdout + run.stderr + written)


def clean_environment() -> dict[str, str]:
    """Return the environment without proxies and credentials."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.startswith(("AWS_", "OS_"))
    }


@contextlib.contextmanager
def own_namespace() -> Iterator[Namespace]:
    """Yield a new namespace; skip the test if it cannot be made."""
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"NOT TESTED: network namespaces need root, {', '.join(NEEDED)}")
    commands = ["ip link set lo up"]
    commands += [f"ip address add {address}/32 dev lo" for address in ADDRESSES]
    script = " && ".join((*commands, "echo ready", "exec cat"))
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            process.stdin.close()
            pytest.skip("NOT TESTED: this machine permits no network namespaces")
        yield Namespace(process)
        process.stdin.close()
