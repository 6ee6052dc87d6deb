"""Commands as JSON lines over a UNIX socket: QMP, and the protocol of the agent in the guest.

https://www.qemu.org/docs/master/interop/qmp-spec.html
"""

import json
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple, Self

from support.waiting import eventually

_TIMEOUT_S = 60.0
"""Of one answer; software emulation is slow."""


class Event(NamedTuple):
    """A message that no command asked for."""

    name: str
    at_s: float
    """Wall-clock time of the host."""
    data: dict[str, Any]


class Channel:
    """One connection, by one thread."""

    def __init__(self, path: Path) -> None:
        if not eventually(path.is_socket, _TIMEOUT_S):
            raise OSError(f"{path}: QEMU has not created the socket")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rwb", buffering=0)
        self._events: list[Event] = []

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def execute(self, command: str, arguments: dict[str, object] | None = None) -> Any:
        """Return the answer to a command; raise OSError if it failed."""
        message = {"execute": command, "arguments": arguments or {}}
        self._file.write(json.dumps(message).encode() + b"\n")
        while True:
            answer = self._receive(_TIMEOUT_S)
            if "error" in answer:
                raise OSError(f"{command} failed: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def wait_for(self, name: str, within_s: float, **data: object) -> Event:
        """Return the next event of this name with these data; earlier events are dropped."""
        deadline = time.monotonic() + within_s
        while True:
            while self._events:
                event = self._events.pop(0)
                if event.name == name and data.items() <= event.data.items():
                    return event
            self._receive(max(0.001, deadline - time.monotonic()))

    def _receive(self, within_s: float) -> dict[str, Any]:
        self._socket.settimeout(within_s)
        line = self._file.readline()
        if not line:
            raise OSError("QEMU has closed the connection")
        message: dict[str, Any] = json.loads(line)
        if "event" in message:
            stamp = message["timestamp"]
            at_s = stamp["seconds"] + stamp["microseconds"] / 1e6
            self._events.append(Event(message["event"], at_s, message.get("data", {})))
        return message
