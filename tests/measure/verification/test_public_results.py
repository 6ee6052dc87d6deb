"""Results that other projects published, judged by terms.

The files in `public/` are reduced to the facts that are judged: options, counts and latencies.

| file | source |
|---|---|
| `vps-comparison-*` | https://github.com/dyu/vps-comparison, fio-iodepth-4/fio-libaio-4K.md |
| `virtualclient-*` | https://github.com/microsoft/VirtualClient, Examples/DiskSpd of its tests |
| `fio-plot-*` | https://github.com/louwrentius/fio-plot and fio-plot-data |
| `fio-3.42-cbt-*` | https://github.com/ceph/cbt, a run of 16 concurrent processes |
| `*.eml` | linux-raid@vger.kernel.org, August 2019 and September 2023 |
| others | results on public pages, of fio 2.1 to 3.28 and of DiskSpd 2.2 |
"""

from pathlib import Path

import pytest

from disksla.base.units import KIB, MIB
from disksla.measure.verification.import_results import decode_text, judge_imported, parse_result
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.suites import make_suite
from disksla.promise.configuration.custom_terms import SumTerms, custom_limits

PUBLIC = Path(__file__).parent / "public"
TOLERANCE = 0.03


def measurements(name: str) -> tuple[Measurement, ...]:
    return parse_result(decode_text((PUBLIC / name).read_bytes()))


Facts = tuple[str, int, int, float, bool | None]


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "vps-comparison-aws.txt",
            [("write", 4 * KIB, 4, 3068.7, True), ("read", 4 * KIB, 4, 3070.1, True)],
        ),
        ("vps-comparison-google.txt", [("read", 4 * KIB, 4, 3846.5, None)]),
        ("fio-2.1-mix.txt", [("randrw", 4 * KIB, 64, 24827.8, True)]),
        (
            "fio-3.28-three-runs.md",
            [
                ("randrw", 4 * KIB, 1024, 446119.2, True),
                ("read", MIB, 64, 1991.3, True),
                ("write", MIB, 64, 2509.2, True),
            ],
        ),
        ("fio-3.28-too-short.json", [("randrw", 4 * KIB, 64, 226915.2, True)]),
        ("fio-3.7-mix-psync.json", [("randrw", 4 * KIB, 1, 5598.8, True)]),
        ("fio-plot-randread-q128.json", [("randread", 4 * KIB, 128, 46420.0, True)]),
        ("fio-plot-raid0.json", [("randwrite", 4 * KIB, 64, 146851.3, True)]),
        ("fio-3.42-cbt-raw-device.json", [("randwrite", 4 * KIB, 8, 3201.7, True)]),
        ("fio-3.1-eight-jobs-on-lvm.md", [("randrw", 64 * KIB, 8, 18215.2, True)]),
        (
            "fio-3.38-windows.txt",
            [("write", 4 * MIB, 16, 17.15, True), ("randread", 4 * KIB, 32, 509.95, True)],
        ),
        (
            "fio-3.7-three-engines.md",
            [
                ("read", 128 * KIB, 128, 1853.8, True),
                ("randread", 4 * KIB, 128, 815.5, True),
                ("randrw", 4 * KIB, 64, 51042.9, True),  # posixaio on one file
            ],
        ),
        (
            "fio-2.2-mail-at-a-rate.eml",
            [("write", 4 * KIB, 32, 4999.8, True), ("write", 4 * KIB, 32, 5.05, True)],
        ),
        (
            "fio-3.33-raid1-and-volume.md",
            [
                ("randrw", 4 * KIB, 128, 543228.7, True),
                ("randrw", 4 * KIB, 128, 186578.9, True),
                ("randrw", 16 * KIB, 16, 97433.0, True),
            ],
        ),
        ("virtualclient-mix-q1.txt", [("randrw", 4 * KIB, 1, 1189.1, True)]),
        ("virtualclient-write-q64.txt", [("randwrite", 4 * KIB, 64, 508.3, True)]),
        ("virtualclient-write-q480.txt", [("randwrite", 4 * KIB, 480, 2242093.1, True)]),
        ("diskspd-2.2-no-parameters.txt", [("randrw", 4 * KIB, 128, 26527.0, True)]),
        ("diskspd-2.2-indented.txt", [("randread", 4 * KIB, 7, 72896.3, True)]),
    ],
)
def test_facts_are_read(name: str, facts: list[Facts]) -> None:
    found = [
        (each.pattern, each.request_bytes, each.inflight, each.measured.iops, each.is_direct)
        for each in measurements(name)
    ]
    assert [each[:3] + each[4:] for each in found] == [each[:3] + each[4:] for each in facts]
    assert [each[3] for each in found] == pytest.approx([each[3] for each in facts], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "iops", "verdicts"),
    [
        ("vps-comparison-aws.txt", 3000.0, ["pass", "pass"]),
        ("vps-comparison-aws.txt", 4000.0, ["untested", "untested"]),
        ("fio-2.1-mix.txt", 24_000.0, ["pass"]),
        ("fio-2.1-mix.txt", 26_000.0, ["fail"]),
        ("fio-3.28-three-runs.md", 400_000.0, ["pass", "untested", "untested"]),
        ("fio-3.7-mix-psync.json", 6000.0, ["untested"]),
        ("fio-plot-randread-q128.json", 46_000.0, ["pass"]),
        ("fio-plot-randread-q128.json", 50_000.0, ["fail"]),
        ("virtualclient-mix-q1.txt", 1200.0, ["pass"]),
        ("virtualclient-write-q64.txt", 500.0, ["pass"]),
        ("virtualclient-write-q64.txt", 600.0, ["fail"]),
        ("diskspd-2.2-no-parameters.txt", 20_000.0, ["pass"]),
        ("fio-3.42-cbt-raw-device.json", 3200.0, ["pass"]),
        ("fio-3.42-cbt-raw-device.json", 4000.0, ["untested"]),
        ("fio-3.1-eight-jobs-on-lvm.md", 19_000.0, ["untested"]),
        ("fio-3.38-windows.txt", 525.0, ["pass", "untested"]),
        ("fio-3.7-three-engines.md", 60_000.0, ["fail", "fail", "untested"]),
        ("fio-2.2-mail-at-a-rate.eml", 5200.0, ["untested", "untested"]),
        ("fio-3.33-raid1-and-volume.md", 200_000.0, ["untested", "untested"]),
        ("fio-3.33-raid1-and-volume.md", 120_000.0, ["pass", "untested"]),
        ("fio-plot-raid0.json", 100.0, []),
        ("fio-3.16-mail-raid10.eml", 100.0, []),
        ("vps-comparison-google.txt", 100.0, []),
        ("fio-3.28-too-short.json", 100.0, []),
    ],
)
def test_loads_are_judged(name: str, iops: float, verdicts: list[str]) -> None:
    limits = custom_limits(SumTerms(iops=iops))
    loads = measurements(name)
    results, unjudged = judge_imported(
        make_suite("terms", limits, TOLERANCE), limits, loads, TOLERANCE
    )
    assert [result.verdict for result in results if result.measured is not None] == verdicts
    assert len(unjudged) == len(loads) - len(verdicts)


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("fio-plot-raid0.json", [("sdb", "sdc", "sdd", "sde")]),
        ("fio-3.42-cbt-raw-device.json", [("nvme8n6",)]),
        ("fio-3.1-eight-jobs-on-lvm.md", [("sda",)]),
        ("fio-3.16-mail-raid10.eml", [("nvme0n1", "nvme3n1"), ("nvme5n1",)]),
        ("fio-3.38-windows.txt", [("E:",), ("E:",)]),
        ("fio-3.33-raid1-and-volume.md", [("nvme0n1", "nvme1n1"), ("sdb",), ("sdb",)]),
    ],
)
def test_disks_are_found(name: str, targets: list[tuple[str, ...]]) -> None:
    assert [load.targets for load in measurements(name)] == targets


def test_percentiles_and_latency_of_normal_output() -> None:
    write, read = measurements("vps-comparison-aws.txt")
    assert write.measured.mean_latency_s == pytest.approx(0.00129412)
    seconds = [each.seconds for each in write.percentiles]
    assert seconds == pytest.approx([0.001188, 0.001369, 0.013435, 0.018482])
    assert read.mean_inflight == pytest.approx(3.977, rel=1e-3)
