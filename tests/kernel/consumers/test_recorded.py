"""`io.stat` as kernels wrote it, while the test of each name was run in a virtual machine.

Between two readings, `dd` of a group: wrote 500 requests of 4 KiB (O_DIRECT); wrote 8 MiB through
the cache to a file of ext4 on vdb, then `sync` of the root; wrote 100 requests in a group that was
removed at once; read 8 MiB in requests of 1 MiB; and 20 times 4 KiB with fsync, in the root.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.kernel.consumers.consumption import ConsumerReading, WatchedDisk
from disksla.kernel.consumers.io_stat import IoStatReader
from disksla.kernel.procfs.diskstats import parse_line, to_counters
from support.cgroup_tree import CgroupTree

ENDED = {"linux-6.1": "kernel", "linux-6.12": "unattributed"}
"""Of a group that ended before it was read, the parent has nothing on Linux 6.1."""
RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.txt"))


def snapshots(text: str) -> Iterator[tuple[str, float, list[str], dict[str, str]]]:
    """Yield name, time, lines of /proc/diskstats and `io.stat` by group of each reading."""
    for name, at_s, body in re.findall(r"SNAP (\S+) (\S+)[^\n]*\n(.*?)ENDSNAP", text, re.DOTALL):
        disks, *groups = body.split("GROUP ")
        heads = [each.partition("\n") for each in groups]
        stats = {head.partition("/")[2]: text for head, _, text in heads}
        yield name, float(at_s), disks.splitlines(), stats


def watched(line: str) -> WatchedDisk:
    major, minor, name, *_ = line.split()
    found = to_counters(parse_line(line).reading)
    requests = (found.reads or 0) + (found.writes or 0)
    merges = (found.reads_merged or 0) + (found.writes_merged or 0)
    return WatchedDisk(name, f"{major}:{minor}", True, requests, merges, 512 * 1024)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_dd_did_is_that_of_its_group(path: Path, tmp_path: Path) -> None:
    tree, posted = CgroupTree(tmp_path), list[ConsumerReading]()
    disks: list[WatchedDisk] = []
    now_s = 0.0
    reader = IoStatReader(tree.roots, posted.append, lambda: disks, lambda: now_s)
    used: dict[str, dict[tuple[str, str], tuple[float | None, float | None]]] = {}
    for name, now_s, lines, stats in snapshots(path.read_text(encoding="ascii")):  # noqa: B007
        disks[:] = map(watched, lines)
        for group, text in stats.items():
            tree.make(group)
            (tree.root / group / "io.stat").write_text(text)
        before = len(posted)
        reader.read()
        used[name] = {
            (each.device, each.consumer): (each.requests, each.bytes)
            for reading in posted[before:]
            for each in reading.consumers
        }
    of_vda = {each: used["direct500"][each] for each in used["direct500"] if each[0] == "vda"}
    assert of_vda == {("vda", "direct.service"): (500, 500 * 4096)}
    assert used["read8M"] == {("vda", "direct.service"): (None, 8 * 2**20)}
    requests, transferred = used["buffered8M"]["vdb", "buffered.service"]
    assert requests is None
    assert 8 * 2**20 <= (transferred or 0) < 8.1 * 2**20
    assert used["buffered8M"]["vdb", "kernel"][1] == pytest.approx(19456, rel=0.5)
    assert used["ended100"] == {("vda", ENDED[path.stem]): (100, 100 * 4096)}
    assert {consumer for _, consumer in used["rootfsync20"]} == {"kernel"}
