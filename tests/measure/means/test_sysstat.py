"""Intervals of disks from the output of sadf and iostat."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.measure.means.mean import NOT_DISKS
from disksla.measure.means.sysstat import RecordedMeans, is_sysstat, parse_sysstat

OLD_NAMES = {"dev7-0": "loop0", "dev254-0": "vda"}
FILES = Path(__file__).parent / "sysstat"
HEAD = "Linux 5.10.0 (db-1) \t11/28/2026 \t_x86_64_\t(2 CPU)\n\n"
OLD = (
    "Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util"
)
NEW = (
    "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz"
    " d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util"
)
PUBLIC = {
    "https://yeonghoey.com/unix-like/iostat/": (
        OLD.replace("kB", "MB"),
        "xvdf 0.00 2934.00 0.00 2000.00 0.00 48.69 49.86 2.59 1.30 0.00 1.30 0.50 99.60",
        (0, 2000, 0, 51_055_165, 0, 2.59),
    ),
    "https://github.com/etcd-io/etcd/issues/7048": (
        OLD,
        "vdb 0.00 210.20 0.00 627.11 0.00 11599.13 36.99 0.15 0.24 8.24 0.24 0.27 17.07",
        (0, 627, 0, 11_877_509, 0, 0.15),
    ),
    "https://github.com/sysstat/sysstat/issues/187": (
        NEW,
        "nvme1n1 13526 216416 0 0 0.10 16.00 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1.40 100.00",
        (13526, 0, 221_609_984, 0, 0, 1.4),
    ),
    "https://github.com/ColinIanKing/stress-ng/issues/148": (
        NEW,
        "sdb 0 0 0 0 0 0 132.67 152926.73 19.80 12.99 54.72 1152.66 0 0 0 0 0 0 1.98 122 7.5 98",
        (0, 133, 0, 156_596_972, 2, 7.5),
    ),
    "https://github.com/scylladb/seastar/issues/593": (
        OLD.replace("kB", "MB"),
        "sdb 0.00 0.00 2147.50 6.50 1073.75 0.20 1021.10 130.61 60.62 60.81 0.00 0.46 100.00",
        (2148, 6, 1_125_908_480, 209_715, 0, 130.61),
    ),
}
"""Address, columns and a row; and what that is: reads, writes, bytes, flushes, in flight."""


@pytest.mark.parametrize("address", PUBLIC)
def test_texts_that_people_posted(address: str) -> None:
    columns, row, expected = PUBLIC[address]
    [found] = parse_sysstat(f"{columns}\n{row}\n\n", 1.0)
    [mean] = found.means
    own = mean.interval
    assert expected == (
        own.reads, own.writes, own.read_bytes, own.written_bytes, own.flushes, mean.inflight
    )  # fmt: skip
    assert found.device == row.split()[0]


@pytest.mark.parametrize(
    ("name", "vda"),
    [
        ("sadf-11.6.1.json", (939, 59_035_648, 4, False)),
        ("sadf-12.6.1.json", (47, 516_096, 3, False)),
        ("iostat-12.6.1.json", (334, 5_066_752, 3, True)),
        ("iostat-12.6.1.txt", (104, 1_300_234, 3, True)),
    ],
)
def test_files_of_a_real_sysstat(name: str, vda: tuple[int, int, float, bool]) -> None:
    text = (FILES / name).read_text()
    assert is_sysstat(text)
    found = {OLD_NAMES.get(each.device, each.device): each for each in parse_sysstat(text, None)}
    assert {name: each.host for name, each in found.items()} == {"vda": "vm", "loop0": "vm"}
    assert [each.device.startswith(NOT_DISKS) for _, each in sorted(found.items())] == [
        True,
        False,
    ]
    means = found["vda"].means
    assert vda == (
        sum(mean.interval.requests for mean in means),
        sum(mean.interval.bytes for mean in means),
        sum(mean.interval.seconds for mean in means),
        means[0].is_told_apart,
    )


@pytest.mark.parametrize("name", ["sadf-12.6.1.json", "iostat-12.6.1.json"])
def test_what_later_versions_add_is_not_read(name: str) -> None:
    text = (FILES / name).read_text()
    later = text.replace('{"sysstat": {', '{"sysstat": {"version": "13",')
    assert later != text
    assert parse_sysstat(later, None) == parse_sysstat(text, None)


@pytest.mark.parametrize(
    "disk",
    [
        {"rd_sec": 800.0, "wr_sec": 0.0, "avgqu-sz": 2.5, "svctm": 1.0},
        {"rkB": 400.0, "wkB": 0.0, "aqu-sz": 2.5},
        {"rd_sec": 800.0, "wr_sec": 0.0, "rkB": 400.0, "wkB": 0.0, "avgqu-sz": 2.5, "aqu-sz": 2.5},
    ],
    ids=["11 to 11.6", "11.7 to 12.2", "12.3 and later"],
)
def test_fields_of_all_versions_of_sadf(disk: dict[str, float]) -> None:
    time = {"date": "2026-11-28", "time": "00:10:01", "utc": 1, "interval": 600}
    statistics = [{"timestamp": time, "disk": [{"disk-device": "dev8-0", "tps": 100.0, **disk}]}]
    host = {"nodename": "db-1", "statistics": [{"timestamp": time}, *statistics]}
    text = json.dumps({"sysstat": {"hosts": [host]}})
    [mean] = parse_sysstat(text, None)[0].means
    assert (mean.interval.reads, mean.interval.read_bytes) == (60_000, 400 * 1024 * 600)
    assert (mean.end_s, mean.inflight, mean.is_told_apart) == (1_795_824_601, 2.5, False)


def row(reads: float) -> str:
    return (
        f"sda 0.00 0.00 {reads:.2f} 0.00 {4 * reads:.2f} 0.00 8.00 1.00 1.00 1.00 0.00 1.00 99.00"
    )


def reads_of(found: list[RecordedMeans]) -> list[int]:
    return [mean.interval.reads for mean in found[0].means]


def table(reads: float, time: str = "") -> str:
    return f"{time}\n{OLD}\n{row(reads)}\n\n"


def test_first_report_of_each_run_is_left_out() -> None:
    run = HEAD + table(7) + table(100) + table(200)
    assert reads_of(parse_sysstat(run, 5.0)) == [500, 1000]
    assert reads_of(parse_sysstat(run + run, 5.0)) == [500, 1000] * 2
    assert reads_of(parse_sysstat(table(100) + table(200), 5.0)) == [500, 1000], "a part of a text"


@pytest.mark.parametrize(
    ("times", "first_s"),
    [
        (("11/28/2026 11:59:55 AM", "11/28/2026 12:00:00 PM"), 1_795_867_200),
        (("11/28/26 23:59:55", "11/29/26 00:00:00"), 1_795_910_400),
        (("28.11.2026 12:00:00", "28.11.2026 12:00:05"), 1_795_867_205),
        (("2026-11-28T12:00:00+0000", "2026-11-28T12:00:05+0000"), 1_795_867_205),
        (("Time: 12:00:00", "Time: 12:00:05"), 43_205),
    ],
)
def test_times(times: tuple[str, str], first_s: float) -> None:
    found = parse_sysstat(HEAD + "".join(table(100, time) for time in times), None)
    [mean] = found[0].means
    assert (mean.end_s, mean.interval.reads) == (first_s, 500)


def test_numbers_with_a_comma_and_numbers_of_a_reset() -> None:
    reset = table(1e14) + table(1).replace("1.00", "-nan?")
    assert reads_of(parse_sysstat((table(100.5) + reset).replace(".", ","), 10.0)) == [1005]


NO_TIMES = "the reports of iostat have no times; expected the seconds"


@pytest.mark.parametrize(
    ("text", "every_s", "expected"),
    [
        (HEAD + table(1) + table(2), None, NO_TIMES),
        (HEAD + table(1, "99/99/2026 12:00:00") * 2, None, NO_TIMES),
        (HEAD + table(1, "2026-11-28T12:00:00"), None, NO_TIMES),
        ('{"sysstat": {"hosts": [{"statistics": [{}]}]}}', None, NO_TIMES),
        ('{"sysstat": {"hosts": 1}}', None, "invalid JSON of sysstat"),
        (
            '{"sysstat": {"hosts": []}}',
            None,
            "found 0 reports, and no interval of a disk; expected",
        ),
        (
            "Device tps kB_read/s kB_wrtn/s\nsda 1.00 2.00 3.00\n",
            5.0,
            "without requests, or those in flight; expected",
        ),
        (
            "Device r/s w/s aqu-sz\nsda 1.00 2.00 3.00\n",
            5.0,
            "without bytes of reads and writes; expected",
        ),
    ],
)
def test_what_cannot_be_read(text: str, every_s: float | None, expected: str) -> None:
    assert is_sysstat(text)
    with pytest.raises(DiskslaError, match=re.escape(expected)):
        parse_sysstat(text, every_s)


@given(
    st.lists(
        st.sampled_from([HEAD, OLD, NEW, row(1), row(1e300), "28.11.2026 12:00:00", "\n", "x"])
    ),
    st.sampled_from([None, 1.0]),
)
def test_any_text_is_read_or_refused(lines: list[str], every_s: float | None) -> None:
    try:
        found = parse_sysstat("\n".join(lines), every_s)
    except DiskslaError:
        return
    assert all(mean.interval.seconds > 0 for each in found for mean in each.means)
