"""Files that disksla writes and reads: saved state and recordings."""

import gzip
import json
import math
import zlib
from functools import cache
from io import BufferedReader, BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.errors import DiskslaError
from disksla.commands.replay import replay_opened
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.settings import Settings
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline import saved_state as saved
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.restore import PreviousRun
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State, to_saved_state
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import window_records
from disksla.verdict.interval.interval import Clocks
from fuzz.target import Target, Tree
from fuzz.targets.settings import CATALOG
from support.simulated_host import a_disk

HOSTS = Path(__file__).parents[3] / "tests" / "hosts"
NOW = Clocks(monotonic_s=1000.0, boottime_s=1000.0, realtime_s=1.7e9)
DISK = a_disk(serial="vol-1")
CONFIGURATION = Configuration(Settings(), CATALOG)
BURSTING = saved.SavedState(
    "machine",
    "boot-1",
    NOW,
    {
        "serial:vol-1": saved.SavedDisk(
            "yandex.network-hdd",
            {"service_seconds": saved.SavedCredits(1800.0, 100.0, 300.0, 200.0, 0.0)},
            300.0,
            3e7,
            {"read-latency": saved.SavedSpending(19000, 4096)},
        )
    },
)


def published(state: State) -> None:
    """Check that the metrics of a state can be parsed, and that no counter is negative."""
    registry = make_registry(SnapshotCollector(lambda: Snapshot(state)))
    page = render_metrics(registry).body.decode()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            assert not math.isnan(sample.value), sample
            assert sample.value >= 0 or not sample.name.endswith(("_total", "_count")), sample


def state(content: bytes) -> bool:
    """Saved state is rejected, or resumed with consistent bounds; with valid checksum or not."""
    envelope = b'{"disksla_state":1,"crc32":%d,"content":%s}' % (zlib.crc32(content), content)
    read = [_resumed(text) for text in (content, envelope)]
    return any(read)


def _resumed(text: bytes) -> bool:
    try:
        decoded = saved.decode(text, "machine", NOW)
    except DiskslaError as error:
        assert str(error)
        return False
    assert saved.decode(saved.encode(decoded), "machine", NOW) == decoded
    for boot in ("boot-1", "boot-2"):
        now = State(Configuration(Settings(), CATALOG), PreviousRun(decoded, boot))
        for later_s in (0.0, 0.1, 0.2):
            clocks = Clocks(*(clock + later_s for clock in msgspec.structs.astuple(NOW)))
            now = advance(now, Tick(clocks, "254 0 vda 1 0 8 1 0 0 0 0 0 1 1\n", disks=(DISK,)))
        for disk_state in now.monitored.values():
            account = disk_state.credits_at(NOW.boottime_s + 0.2)
            for credit in account.bucket_credits if account else ():
                assert 0 <= credit.lower_credits <= credit.estimate_credits
                assert credit.estimate_credits <= credit.upper_credits
        published(now)
        later = to_saved_state(now, "machine", boot)
        assert later is None or saved.decode(saved.encode(later), "machine", NOW) == later
    return True


def recorded(content: bytes) -> bool:
    """A recording is rejected with the number of the invalid line, or replayed and published.

    It may be compressed: the check starts with the bytes of the file.
    """
    states: list[State] = []
    try:
        file = cast("BufferedReader", BufferedReader(BytesIO(content)))
        for after in islice(replay_opened(file, CONFIGURATION), 40):
            for record in window_records(states[-1], after) if states else ():
                msgspec.json.encode(record)
            states.append(after)
    except DiskslaError as error:
        assert str(error).startswith(f"line {len(states) + 1}: ")
        return False
    published(states[-1])
    return True


def _parse_lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


def _encode_lines(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


JSON = Tree(json.loads, lambda tree: json.dumps(tree).encode())
JSON_LINES = Tree(_parse_lines, _encode_lines)


@cache
def _short_recordings() -> tuple[bytes, ...]:
    """Return the first lines of recordings, so that a mutation hits one of few lines.

    One of them is compressed, too.
    """
    plain = [
        b"".join(path.read_bytes().splitlines(keepends=True)[:6])
        for path in sorted(HOSTS.glob("*/ticks.jsonl"))
    ]
    return (*plain, gzip.compress(plain[0], mtime=0))


TARGETS = (
    Target(
        "state",
        state,
        lambda: [saved.encode(BURSTING), msgspec.json.encode(BURSTING)],
        words=(b'"crc32":0', b'"iops"', b'"bytes"', b'"serial:vol-1"', b"1e300", b"null"),
        tree=JSON,
    ),
    Target(
        "recording",
        recorded,
        lambda: list(_short_recordings()),
        words=(b'"clocks":', b'"missed_ticks":', b'"lateness_s":', b"1e308", b"null", b"-"),
        tree=JSON_LINES,
    ),
)
