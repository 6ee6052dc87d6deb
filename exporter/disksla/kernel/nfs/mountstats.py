"""/proc/<pid>/mountstats: parse the counters of NFS mounts (v3 and v4.x).

Format: fs/nfs/super.c, net/sunrpc/stats.c and net/sunrpc/xprtsock.c of the kernel; an example:

    device fs1.example:/export mounted on /data with fstype nfs4 statvers=1.1
            opts:   rw,vers=4.2,rsize=1048576,wsize=1048576,...,proto=tcp,nconnect=2
            age:    83520
            events: 52472 472680 16671 ...
            bytes:  2021340783 39056395530 0 0 1788561151 39087991255 442605 9557343
            RPC iostats version: 1.1  p/v: 100003/4 (nfs)
            xprt:   tcp 940 0 2 0 1 938505 938504 0 12756069 0 32 254729 10823602
            xprt:   tcp 815 0 2 0 1 921340 921340 0 12012001 0 32 240112 10310229
            per-op statistics
                    NULL: 1 1 0 44 24 0 0 0 0
                    READ: 34096 34096 0 7103096 1792122744 2272 464840 467945 0
                   WRITE: 322308 322308 0 39161277084 56725504 401718334 10139998 411864389 0
                  COMMIT: 12541 12541 0 2709896 1304264 342 7179 7819 0

An operation has 8 numbers, and 9 since Linux 5.3: operations, transmissions, timeouts, bytes sent
and received, ms of QUEUE (until the last transmission), RTT (from there to the reply) and EXECUTE
(all of it), and errors. All are counted when an operation ends. `bytes` are payload, the fifth
number read from and the sixth written to the server. `xprt` is a connection; there are several
with nconnect. Lines that are not known are skipped: each version of the kernel adds some.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.kernel.procfs import SECTOR_BYTES, CounterValues, unescape

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_DEVICE, _MOUNTED, _TYPE = "device ", " mounted on ", " with fstype "
_BYTES = re.compile(r"bytes:\s+(.*)")
_TRANSPORT = re.compile(r"xprt:\s+(\S+) (.*)")
_COUNT = re.compile(r": (\d+)")  # in the lines of operations, each has one
_RETURNED = re.compile(r"RETURN: (\d+)")  # of DELEGRETURN and LAYOUTRETURN
_OF_CONNECTIONS = {"on_wire", "returned"}
"""Values that fall, too: when replies come, and when another mount is gone."""
_OPERATIONS = "per-op statistics"
_SESSIONS = ",sessions"
NFS = ("nfs", "nfs4")  # types of file systems whose counters are here
_READ, _WRITTEN = 4, 5
_QUEUE, _RTT, _EXECUTE = 5, 6, 7  # places of times among the numbers of an operation
_SENDS = {"tcp": 5, "rdma": 5, "local": 4, "udp": 2}
"""Place of the number of requests that were sent; replies and replies to no request follow."""
_CONNECTS = {"tcp": 2, "rdma": 2, "local": 1}
_LIMIT, _SIGN = 2**63, 2**64


class MalformedMountError(DiskslaError):
    """What the kernel counts of a mount cannot be parsed; the message quotes it."""


class MountReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counters of one NFS mount, since it was mounted."""

    reads: Count  # READ and READ_PLUS
    writes: Count
    read_bytes: Count  # payload, without headers
    written_bytes: Count
    read_ms: Count  # time of all reads from creation to reply (EXECUTE)
    write_ms: Count
    commits: Count = 0
    others: Count = 0
    """Operations besides READ, READ_PLUS, WRITE and COMMIT: metadata, locks, sessions."""
    queue_ms: Count = 0
    """Of the time of reads and writes, what they waited in this machine: for a slot of the session
    and for the connection."""
    rtt_ms: Count = 0  # and what they waited for the network and the server
    on_wire: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    """Requests of any kind and of any mount that were sent over the connections and not answered.
    Those that never will be are among them, and with sessions (v4.1 and later) what this machine
    answered to calls of the server."""
    returned: Count = 0
    """Delegations and layouts that mounts returned over the connections: by themselves, or after a
    call of the server."""
    replies: Count = 0  # replies on the connections
    connects: Count = 0  # how often the connections were made
    has_sessions: bool = False
    """NFS v4.1 or later: the server calls this machine over the same connections."""
    shares_connections: bool = False  # whether other mounts use the connections, too

    @property
    def counts(self) -> tuple[int, ...]:
        """The counters that only rise while it is mounted."""
        values = msgspec.structs.asdict(self)
        return tuple(int(value) for key, value in values.items() if key not in _OF_CONNECTIONS)

    @property
    def besides_data(self) -> int:
        """Operations that are neither reads nor writes."""
        return self.others + self.commits

    @property
    def counters(self) -> CounterValues:
        """The counters in the order of /proc/diskstats; None where there is no such counter.

        Bytes are in sectors, rounded down: a difference errs by less than a sector, and a sum of
        differences does not err more.
        """
        read_sectors, written_sectors = (
            self.read_bytes // SECTOR_BYTES,
            self.written_bytes // SECTOR_BYTES,
        )
        return (
            *(self.reads, None, read_sectors, self.read_ms),
            *(self.writes, None, written_sectors, self.write_ms),
            *(None, self.read_ms + self.write_ms),
        )


_LEAST, _LEAST_WITH_SESSIONS = 1, 2
"""Requests on the wire that are in flight. With sessions, one may be an answer to the server."""


class MountState(msgspec.Struct, frozen=True, gc=False):
    """What the kernel counts of a mount, and what of it will never be answered."""

    reading: MountReading
    unanswered: int
    """Of the requests on the wire: those that were lost, with a connection or by the server, and
    what was no request, but an answer to a call of the server. What was on the wire at the first
    sample is among them: it is not known to be answered ever."""
    replied_s: float
    """Monotonic time at which the last reply was seen, or nothing else was on the wire."""

    @property
    def on_wire(self) -> int:
        """Requests on the wire that may be answered."""
        return self.reading.on_wire - self.unanswered

    @property
    def in_flight(self) -> int:
        """Requests that are certainly on the wire."""
        least = _LEAST_WITH_SESSIONS if self.reading.has_sessions else _LEAST
        return self.on_wire if self.on_wire >= least else 0

    def after(
        self, reading: MountReading, now_s: float, elapsed_s: float, longest_s: float
    ) -> "MountState":
        """Return the state after another reading, so long after the one before it.

        Where a connection was made anew, or the server answers after a silence of more than
        `longest_s`, what was on the wire may be lost. And with a delegation that is returned, an
        answer to the call for it may be on the wire. If not, the number falls below that, and that
        is the number.
        """
        has_replied = reading.replies != self.reading.replies
        may_be_lost = reading.connects != self.reading.connects or (
            has_replied and now_s - elapsed_s - self.replied_s > longest_s
        )
        unanswered = self.unanswered + (self.on_wire if may_be_lost else 0)
        if reading.has_sessions:
            unanswered += max(0, reading.returned - self.reading.returned)
        unanswered = min(reading.on_wire, unanswered)
        is_quiet = has_replied or reading.on_wire == unanswered
        return MountState(reading, unanswered, now_s if is_quiet else self.replied_s)


class Mountstats(NamedTuple):
    """What the text of mountstats says of some mounts."""

    readings: dict[str, MountReading]
    problems: dict[str, str]  # why mounts could not be parsed, by device


def parse_mountstats(text: str, device_at: Mapping[str, str]) -> Mountstats:
    """Return the counters of NFS mounts by device; `device_at` has the devices by mount point.

    Of several mount points of a device, the first counts; of several mounts at one point, the
    last, which is above the others. A mount that cannot be parsed is a problem, and the others are
    read nevertheless. Mounts without a device may use the connections of those that have one.
    """
    readings: dict[str, MountReading] = {}
    problems: dict[str, str] = {}
    connections: dict[str, str] = {}
    users: Counter[str] = Counter()
    returned: Counter[str] = Counter()
    blocks = tuple(mount_blocks(text.rstrip()))
    above = dict(blocks)
    for mount_point, block in blocks:
        device = device_at.get(mount_point) if above[mount_point] == block else None
        if device in readings or device in problems:
            continue
        connection = _connections(block)
        users[connection] += 1
        returned[connection] += sum(map(int, _RETURNED.findall(block)))
        if device is None:
            continue
        try:
            readings[device], connections[device] = _parse(block), connection
        except (MalformedMountError, ValueError) as error:
            problems[device] = str(error)
    for device, connection in connections.items():
        readings[device] = msgspec.structs.replace(
            readings[device],
            shares_connections=bool(connection) and users[connection] > 1,
            returned=min(_LIMIT - 1, returned[connection]),
        )
    return Mountstats(readings, problems)


def mount_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the mount point of each NFS mount, and the lines after its head."""
    for block in f"\n{text}".split(f"\n{_DEVICE}")[1:]:
        head, _, lines = block.partition("\n")
        mount_point, _, rest = head.partition(_MOUNTED)[2].partition(_TYPE)
        if rest.partition(" ")[0] in NFS:
            yield unescape(mount_point), lines


def _parse(block: str) -> MountReading:
    """Return the counters of a mount."""
    payload = _BYTES.search(block)
    if payload is None:
        raise MalformedMountError("found no line 'bytes:'; expected the counters of an NFS mount")
    transferred = _numbers(payload[1], _WRITTEN + 1)
    operations = block.partition(_OPERATIONS)[2]
    of = {name: _operation(operations, name) for name in ("READ", "WRITE", "READ_PLUS", "COMMIT")}
    reads, writes = of["READ"], of["WRITE"]
    if reads is None or writes is None:
        raise MalformedMountError("found no READ and WRITE; expected operations of NFS v3 or v4")
    if of["READ_PLUS"] is not None:
        reads = [sum(both) for both in zip(reads, of["READ_PLUS"], strict=False)]
    commits = of["COMMIT"][0] if of["COMMIT"] is not None else 0
    total = sum(map(int, _COUNT.findall(operations)))
    lines = _TRANSPORT.findall(block)
    connects, sends, replies, unknown = map(
        sum, zip((0, 0, 0, 0), *map(_transport, lines), strict=True)
    )
    reading = MountReading(
        reads=reads[0],
        writes=writes[0],
        read_bytes=transferred[_READ],
        written_bytes=transferred[_WRITTEN],
        read_ms=reads[_EXECUTE],
        write_ms=writes[_EXECUTE],
        commits=commits,
        others=total - reads[0] - writes[0] - commits,
        queue_ms=max(0, reads[_QUEUE] + writes[_QUEUE]),
        rtt_ms=max(0, reads[_RTT] + writes[_RTT]),
        on_wire=sends - replies - unknown,
        replies=replies,
        connects=connects,
        has_sessions=_SESSIONS in block,
    )
    of_connections = (abs(reading.on_wire), replies, connects)
    if min(*reading.counts) < 0 or max(*reading.counts, *of_connections) >= _LIMIT:
        raise MalformedMountError("found a counter of 2^63 or more; expected less")
    return reading


def _connections(block: str) -> str:
    """Return the counters of the connections of a mount, which no others have."""
    return "\n".join(numbers for _, numbers in _TRANSPORT.findall(block))


def _operation(operations: str, name: str) -> list[int] | None:
    """Return the numbers of an operation; None if it is not there.

    A search for the text takes a tenth of the time of an expression for each line.
    """
    key, start = f"{name}: ", 0
    while (start := operations.find(key, start)) >= 0:
        begin, start = start, start + len(key)
        if operations[begin - 1].isspace():  # LAYOUTCOMMIT is another one
            return _numbers(operations[start:].partition("\n")[0], _EXECUTE + 1)
    return None


def _transport(line: tuple[str, str]) -> tuple[int, int, int, int]:
    """Return how often a connection was made, requests sent, replies, and replies to none.

    Of a protocol or a line that is not known, nothing is.
    """
    protocol, text = line
    place = _SENDS.get(protocol)
    if place is None:
        return (0, 0, 0, 0)
    try:
        numbers = _numbers(text, place + 3)
    except (MalformedMountError, ValueError):
        return (0, 0, 0, 0)
    connects = numbers[_CONNECTS[protocol]] if protocol in _CONNECTS else 0
    return connects, numbers[place], numbers[place + 1], numbers[place + 2]


def _numbers(text: str, least: int) -> list[int]:
    """Return the numbers of a line; those that are printed without their sign have it again.

    Raise MalformedMountError for less than that many, ValueError for anything but numbers.
    """
    numbers = [int(number) for number in text.split()]
    if len(numbers) < least:
        raise MalformedMountError(f"found {text[:120]!r}; expected {least} numbers or more")
    return [number - _SIGN if number >= _LIMIT else number for number in numbers]
