"""The calculator, as it is called."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from disksla.cli import main
from disksla.units import MIB

RATE_NAMES = ("read_iops", "write_iops", "read_bytes_per_second", "write_bytes_per_second")


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["limits", *words, "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def page(*words: str) -> str:
    """Give what a terminal of 80 columns shows."""
    command = [sys.executable, "-c", "from disksla.cli import main; raise SystemExit(main())"]
    return subprocess.run(
        [*command, "limits", *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ).stdout


def test_the_document_has_everything_in_base_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "vk.ceph-ssd", "500GiB") == {
        "read_iops": 15000,
        "write_iops": 7500,
        "read_bytes_per_second": 400 * MIB,
        "write_bytes_per_second": 400 * MIB,
        "latency_seconds": 0.003,
        "latency_kind": "indicative",
        "burst": None,
    }


def test_whole_numbers_have_no_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limits", "vk.ceph-ssd", "500GiB", "--json", "--request-size", "8KiB"]) == 0
    printed = capsys.readouterr().out
    assert '"effective_iops": 11250,' in printed
    assert '"read_iops": 15000,' in printed


@pytest.mark.parametrize(
    ("words", "promise", "enforced"),
    [
        (("vk.ceph-ssd", "500GiB", "--request-size", "8KiB"), 11250, 15000),
        (("vk.ceph-ssd", "500GiB", "--request-size", "16KiB"), 7500, 15000),
        (("vk.ceph-ssd", "500GiB", "--write-share", "1"), 7500, 7500),
        (("vk.dp1-ssd", "500GiB", "--write-share", "0.2"), 18750, 18750),
        (("yandex.network-hdd", "256GiB", "--request-size", "4KiB"), 288.72, 299.18),
        (("yandex.network-hdd", "256GiB", "--write-share", "0.5"), 288.72, 299.18),
        (("generic.ssd", "256GiB", "--write-share", "0.5"), None, None),
    ],
)
def test_effective_iops_are_added_when_asked_for(
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    promise: float | None,
    enforced: float | None,
) -> None:
    printed = document(capsys, *words)
    assert printed["effective_iops"] == pytest.approx(promise, abs=0.005)
    assert printed["effective_iops_enforced"] == pytest.approx(enforced, abs=0.005)


def test_a_burst_has_rates_and_its_sole_bucket(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "yandex.network-hdd", "256GiB")["burst"] == {
        "read_iops": 1200,
        "write_iops": 1200,
        "read_bytes_per_second": 120 * MIB,
        "write_bytes_per_second": 120 * MIB,
        "resource": "service_seconds",
        "capacity": 5400,
        "fill": 0.125,
        "buckets": [{"resource": "service_seconds", "capacity": 5400, "fill": 0.125}],
    }


def test_nothing_promised_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "generic.nvme", "1TiB")
    assert set(printed) == {*RATE_NAMES, "latency_seconds", "latency_kind", "burst"}
    assert set(printed.values()) == {None}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vk.cephssd", "500GiB"), "did you mean vk.ceph-ssd"),
        (("vk.ceph-ssd", "500"), "SIZE: expected a size such as 500GiB, 1.5TB or 4KiB, not '500'"),
        (("vk.ceph-ssd", "0GiB"), "SIZE: expected a size above zero"),
        (("vk.ceph-ssd", "5GiB", "--request-size", "0KiB"), "--request-size: expected a size"),
        (("vk.ceph-ssd", "5GiB", "--request-size", "big"), "--request-size: expected a size"),
        (
            ("vk.ceph-ssd", "5GiB", "--write-share", "1.1"),
            "--write-share: expected a share from 0",
        ),
        (
            ("vk.ceph-ssd", "5GiB", "--write-share", "nan"),
            "--write-share: expected a share from 0",
        ),
        (("vk.ceph-ssd", "5GiB", "--write-share=-0.1"), "--write-share: expected a share from 0"),
        (("vk.ceph-ssd", "5GiB", "--iops", "0"), "--iops: expected a number above zero"),
        (("vk.ceph-ssd", "5GiB", "--iops", "many"), "--iops: expected a number above zero"),
        (("vk.ceph-ssd", "5GiB", "--iops", "4000"), "the IOPS of vk.ceph-ssd cannot be chosen"),
        (("vk.ceph-ssd", "5GiB", "--bandwidth", "0MB"), "--bandwidth: expected a bandwidth above"),
        (("vk.ceph-ssd", "5GiB", "--bandwidth", "1MB/s"), "the bandwidth of vk.ceph-ssd cannot"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["limits", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def test_the_page_tells_the_limits_and_the_way_to_them() -> None:
    printed = page("vk.ef-nvme", "500GiB", "--request-size", "16KiB")
    assert "VK Cloud, Low Latency NVMe (vk.ef-nvme), 500 GiB" in printed
    assert "1172 MiB/s" in printed
    assert "75 x 500 GiB = 37500" in printed
    assert "0.5 ms, guaranteed" in printed
    assert "18750, at most 37500, for requests of 16 KiB, reads only" in printed
    assert "https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla" in printed


@pytest.mark.parametrize(
    "words",
    [
        ("vk.ef-nvme", "300GB", "--request-size", "5000B", "--write-share", "0.33"),
        ("yandex.network-hdd", "100GiB"),
        ("yandex.network-ssd-nonreplicated", "1TiB"),
        ("generic.hdd", "1TiB", "--write-share", "1"),
    ],
)
def test_the_page_is_no_wider_than_a_terminal(
    words: tuple[str, ...],
) -> None:
    assert max(map(len, page(*words).splitlines())) <= 80


@pytest.mark.parametrize(
    ("terms", "size", "noted"),
    [
        ("vk.ceph-ssd", "500GB", True),
        ("vk.ceph-ssd", "500GiB", False),
        ("generic.ssd", "5GB", False),
    ],
)
def test_decimal_sizes_are_pointed_out_where_the_provider_means_binary_ones(
    terms: str, size: str, noted: bool
) -> None:
    note = "500GB is 465.7 GiB; VK Cloud's GB are GiB."
    assert (note in page(terms, size)) is noted


def test_credits_and_caps_are_told() -> None:
    printed = page("yandex.network-hdd", "600GiB")
    assert "594 s of base-level service, 12 h to refill" in printed
    assert "119.7 MiB/s" in printed
    assert "3500 IOPS and 45 MiB/s per vCPU over all such disks" in printed
