"""mountstats: texts of real clients, any other text, and how often they are read."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.nfs.mountstats import MountReading, parse_mountstats
from disksla.kernel.nfs.nfs_files import MANY_MOUNTS, MountstatsFile
from disksla.kernel.procfs.diskstats import to_counters
from support.nfs_client import Export, NfsClient

TEXTS = Path(__file__).parent / "mountstats"


def read(name: str, *mount_points: str) -> list[MountReading]:
    """Return the counters of the mounts of a published text, in the order that is asked for."""
    text = (TEXTS / f"{name}.txt").read_text()
    found = parse_mountstats(text, {point: point for point in mount_points})
    assert not found.problems
    return [found.readings[point] for point in mount_points]


@pytest.mark.parametrize(
    ("name", "mount_point", "expected"),
    [
        # operations and bytes as procfs 0.22 of Prometheus parses these texts, and mean times (ms)
        # as nfsiostat of nfs-utils 2.6.2 prints them
        ("v3-tcp-3.x", "/data", (38424461, 159898, 1386876894225, 1758878, 4.904, 1.774)),
        ("v4.1-5.3", None, (34096, 322308, 1788561151, 39087991255, 13.725, 1277.859)),
        (
            "v3-nconnect-4.18",
            "/storage/group",
            (36019499, 3304938, 1730835995062, 212213971093, 0.754, 377.186),
        ),
        (
            "v3-nconnect-4.18",
            "/storage/home",
            (420683, 87100, 13941630626, 2386575218, 0.643, 6.204),
        ),
        ("v3-rdma-5.x", "/mnt/rdma", (2654501510, 0, 2013200952170479, 0, 14.288, None)),
        (
            "v4.2-negative-queue-4.x",
            "/home",
            (38821, 137939, 4406481497, 5911215386, 22.386, 512.287),
        ),
        (
            "v4.2-reconnected-5.x",
            "/mnt/docs",
            (484, 513, 11208171, 121607878, 4.525, 517.579),
        ),
        ("v3-v4.2-6.1", "/mnt/a", (129, 40, 8388608, 1310720, 7.612, 15.450)),
        ("v3-v4.2-6.1", "/mnt/b", (129, 40, 8388608, 1310720, 6.101, 19.275)),
        ("v3-v4.2-6.12", "/mnt/a", (129, 40, 8388608, 1310720, 9.109, 21.375)),
        # its reads are READ_PLUS, which nfsiostat does not print
        ("v3-v4.2-6.12", "/mnt/b", (129, 40, 8388608, 1310720, 786 / 129, 20.125)),
    ],
)  # fmt: skip
def test_counters_of_real_clients(
    name: str, mount_point: str | None, expected: tuple[float | None, ...]
) -> None:
    if mount_point is None:
        head = (TEXTS / f"{name}.txt").read_text().split(" mounted on ")[1]
        mount_point = head.split()[0]
    (reading,) = read(name, mount_point)
    reads, writes, read_bytes, written_bytes, read_ms, write_ms = expected
    assert (reading.reads, reading.writes) == (reads, writes)
    assert (reading.read_bytes, reading.written_bytes) == (read_bytes, written_bytes)
    assert reading.read_ms / reading.reads == pytest.approx(read_ms, abs=0.001)
    if write_ms is not None:
        assert reading.write_ms / reading.writes == pytest.approx(write_ms, abs=0.001)


def test_mounts_of_all_versions_beside_each_other() -> None:
    points = ("/mnt/nfsv4.2", "/mnt/nfsv4.1", "/mnt/nfsv4.0", "/mnt/nfsv3")
    readings = read("v3-v4-4.18", *points)
    assert [each.writes for each in readings] == [2, 2, 4, 8]
    assert {each.written_bytes for each in readings} == {1048576}
    assert [each.commits for each in readings] == [1, 1, 1, 1]
    assert [each.others for each in readings] == [11, 5, 7, 7]
    assert not any(each.shares_connections for each in readings)


def test_connections_are_summed_and_what_never_comes_is_on_the_wire() -> None:
    group, home = read("v3-nconnect-4.18", "/storage/group", "/storage/home")
    assert (group.on_wire, group.replies, group.connects) == (0, 40009085, 883)
    assert (home.on_wire, home.replies, home.connects) == (0, 2516139, 2414)
    (rdma,) = read("v3-rdma-5.x", "/mnt/rdma")
    assert (rdma.on_wire, rdma.connects) == (0, 5808 + 14526)
    (reconnected,) = read("v4.2-reconnected-5.x", "/mnt/docs")
    assert (reconnected.on_wire, reconnected.connects) == (30, 62)
    assert (reconnected.returned, reconnected.commits, reconnected.others) == (1305, 9, 34043)


def test_two_exports_of_one_server_share_their_connections() -> None:
    both = read("v4.2-two-exports-5.15", "/nfs-mount", "/nfs-mount-2")
    assert all(each.shares_connections for each in both)


def test_a_mount_that_is_not_monitored_may_share_connections_too() -> None:
    (only,) = read("v4.2-two-exports-5.15", "/nfs-mount")
    assert only.shares_connections


def test_times_are_those_of_the_whole_the_wait_here_and_there() -> None:
    (reading,) = read("v4.2-two-exports-5.15", "/nfs-mount")
    assert (reading.read_ms, reading.write_ms) == (133, 50176306)
    assert (reading.queue_ms, reading.rtt_ms) == (49846208, 329955 + 132)
    counters = to_counters(reading.counters)
    assert (counters.read_sectors, counters.written_sectors) == (19531, 25165824)
    assert counters.busy_ms is None
    assert counters.reads_merged is None
    assert counters.flushes is None


HEAD = "device fs1.example:/export mounted on /data with fstype nfs4 statvers=1.1\n"
GOOD = (
    f"{HEAD}\tbytes:\t0 0 0 0 8192 4096 2 1\n\txprt:\ttcp 0 0 1 0 0 5 4 0 5 0 2 0 0\n"
    "\tper-op statistics\n\t        READ: 2 2 0 200 8400 1 5 6 0\n"
    "\t       WRITE: 1 1 0 4300 100 0 2 2 0\n"
)


@pytest.mark.parametrize(
    ("transports", "on_wire"),
    [
        # prometheus/procfs#450, the first two of sixteen
        (
            (
                "689 1 2 0 0 2826 2818 0 24955 0 10 0 22129",
                "815 1 2 0 0 2819 2811 0 24942 0 10 0 22123",
            ),
            16,
        ),
        # linux-nfs@vger.kernel.org, two of four, of v3 and of v4.2
        (
            (
                "0 1 2 0 0 85480 85380 0 6549783 0 102 166291 6296122",
                "0 1 2 0 0 85827 85727 0 6575842 0 102 149914 6322130",
            ),
            200,
        ),
        (("0 0 2 0 0 292 292 0 1443 0 10 102 1055", "0 0 2 0 0 287 286 0 1407 0 9 64 1067"), 1),
    ],
)
def test_published_connections_of_nconnect_over_tcp(
    transports: tuple[str, ...], on_wire: int
) -> None:
    lines = "\n\txprt:\ttcp ".join(transports)
    text = GOOD.replace("0 0 1 0 0 5 4 0 5 0 2 0 0", lines)
    reading = parse_mountstats(text, {"/data": "a"}).readings["a"]
    assert (reading.on_wire, reading.connects) == (on_wire, 4)


@pytest.mark.parametrize(
    ("transport", "on_wire", "connects"),
    [
        ("tcp 832 0 1 0 11 6428 6420 1 12154 0 24 26 5726", 7, 1),
        ("tcp 1 2 3 4 5 60 50 8 9 10", 2, 3),
        ("udp 740 1 881477 875055 5946 2888414103 286261 16 258752 2080886", 476, 0),
        ("udp 1 2 30 20 5 6 7", 5, 0),
        ("local 1 2 0 30 70 60 4 100 0 8 2 3", 6, 2),
        ("rdma 0 0 3 0 24 9 7 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 11 0 0 0", 2, 3),
        ("quic 1 2 3", 0, 0),
    ],
)
def test_protocols_of_connections(transport: str, on_wire: int, connects: int) -> None:
    text = GOOD.replace("tcp 0 0 1 0 0 5 4 0 5 0 2 0 0", transport)
    reading = parse_mountstats(text, {"/data": "a"}).readings["a"]
    assert (reading.on_wire, reading.connects) == (on_wire, connects)


def test_what_is_returned_is_of_all_mounts_of_the_connections() -> None:
    text = f"{GOOD}\t DELEGRETURN: 3 3 0 1 1 1 1 1 0\n\tLAYOUTRETURN: 4 4 0 1 1 1 1 1 0\n"
    both = text + text.replace("/data", "/other")
    found = parse_mountstats(both, {"/data": "a"}).readings["a"]
    assert (found.returned, found.others) == (14, 7)
    apart = text + text.replace("/data", "/other").replace("tcp 0", "tcp 9")
    assert parse_mountstats(apart, {"/data": "a"}).readings["a"].returned == 7


@pytest.mark.parametrize(
    "bad",
    [
        GOOD.replace("bytes:", "bites:"),
        GOOD.replace("8192 4096 2 1", "8192"),
        GOOD.replace("READ:", "REED:"),
        GOOD.replace("4300 100 0 2 2 0", "4300"),
        GOOD.replace("8192", str(2**63)),
        HEAD,
    ],
)
def test_one_bad_mount_is_a_problem_and_the_others_are_read(bad: str) -> None:
    text = bad + GOOD.replace("/data", "/other")
    found = parse_mountstats(text, {"/data": "bad", "/other": "good"})
    assert list(found.readings) == ["good"]
    assert list(found.problems) == ["bad"]


def test_the_upper_of_two_mounts_at_a_point_counts() -> None:
    upper = GOOD.replace("READ: 2 ", "READ: 640 ").replace("5 4 0 5", "7 6 0 7")
    assert upper != GOOD
    found = parse_mountstats(GOOD + upper, {"/data": "a"})
    assert found.readings["a"].reads == 640
    assert parse_mountstats(upper + GOOD, {"/data": "a"}).readings["a"].reads == 2


def test_an_odd_line_of_a_connection_costs_the_line_only() -> None:
    found = parse_mountstats(GOOD.replace("5 4 0 5 0 2 0 0", "x"), {"/data": "a"})
    assert (found.readings["a"].reads, found.readings["a"].on_wire) == (2, 0)


def test_what_is_no_nfs_mount_and_what_is_not_asked_for_is_skipped() -> None:
    text = f"device /dev/vda1 mounted on /data with fstype ext4\n{GOOD}{GOOD}"
    assert parse_mountstats(text, {}).readings == {}
    assert parse_mountstats(text, {"/": "x"}) == ({}, {})
    once = parse_mountstats(text, {"/data": "a"}).readings["a"]
    assert (once.reads, once.shares_connections) == (2, False)


def test_an_operation_whose_name_ends_like_another_is_not_that() -> None:
    start = "per-op statistics\n"
    before = GOOD.replace(start, f"{start}\tPREREAD: 9 9 0 9 9 9 9 9 0\n")
    found = parse_mountstats(before, {"/data": "a"}).readings["a"]
    assert (found.reads, found.others) == (2, 9)


def test_names_with_spaces() -> None:
    text = GOOD.replace("mounted on /data", r"mounted on /my\040data")
    assert list(parse_mountstats(text, {"/my data": "a"}).readings) == ["a"]


NUMBERS = st.integers(0, 2**63 - 1)


@given(st.lists(NUMBERS, min_size=8, max_size=9), NUMBERS, NUMBERS, st.sampled_from("\t ,%"))
def test_any_counters_are_read_exactly(
    numbers: list[int], read_bytes: int, written_bytes: int, unknown: str
) -> None:
    operation = " ".join(map(str, numbers))
    text = (
        f"{HEAD}\tnews:{unknown}\t1\n\tbytes:\t0 0 0 0 {read_bytes} {written_bytes} 0 0 9\n"
        f"\tper-op statistics\n\t READ: {operation}\n\t WRITE: 0 0 0 0 0 0 0 0\n"
        "\t 71: 3 0 0 0 0 0 0 0\n"
    )
    found = parse_mountstats(text, {"/data": "a"})
    if numbers[0] + 3 >= 2**63:
        return
    reading = found.readings["a"]
    assert (reading.reads, reading.read_ms, reading.others) == (numbers[0], numbers[7], 3)
    assert (reading.read_bytes, reading.written_bytes) == (read_bytes, written_bytes)
    again = msgspec.json.decode(msgspec.json.encode(reading), type=MountReading)
    assert again == reading


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = parse_mountstats(HEAD + text, {"/data": "a"})
    assert set(found.readings) | set(found.problems) == {"a"}


def test_the_file_is_opened_once_and_read_whole(tmp_path: Path) -> None:
    exports = [Export(f"fs1:/export{n}", f"/data{n}", 50 + n) for n in range(100)]
    client = NfsClient(*exports)
    client.write(tmp_path)
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    device_at = {f"/data{n}": f"fs1:/export{n}" for n in range(100)}
    assert len(file.read(device_at, 0.0).readings) == 100
    before = len(list(Path("/proc/self/fd").iterdir()))
    exports[99].does("READ", 7, 4096)
    client.write(tmp_path)
    assert file.read(device_at, 0.1).readings["fs1:/export99"].reads == 7
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    file.close()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    with pytest.raises(OSError, match="mountstats"):
        file.read({}, 0.0)


def test_a_long_text_is_read_once_a_second(tmp_path: Path) -> None:
    """To parse it takes more than a millisecond: 20,000 mounts that are not monitored."""
    NfsClient(Export()).write(tmp_path)
    path = tmp_path / "1" / "mountstats"
    path.write_text(path.read_text() + Export().block("/other") * 20000)
    file = MountstatsFile(path, tmp_path)
    file.read({"/data": "a"}, 10.0)
    assert not file.is_due(1, 10.9)
    assert file.is_due(1, 11.0)
    file.close()


def test_many_mounts_are_read_once_a_second(tmp_path: Path) -> None:
    client = NfsClient(Export())
    client.write(tmp_path)
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    assert file.is_due(1, 10.0)
    file.read({}, 10.0)
    assert not file.is_due(MANY_MOUNTS + 1, 10.9)
    assert file.is_due(MANY_MOUNTS + 1, 11.0)
    file.close()
