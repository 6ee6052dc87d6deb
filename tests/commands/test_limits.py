"""Tests of `disksla limits`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from disksla.cli import main
from disksla.units import MIB

Page = Callable[..., str]


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["limits", *arguments, "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Page:
    """Return a function that returns the output on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def shown(*arguments: str) -> str:
        assert main(["limits", *arguments]) == 0
        return capsys.readouterr().out

    return shown


def test_limits_json_in_base_units(capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "vk.ceph-ssd", "500GiB")
    assert (printed["terms"], printed["provider"], printed["size_bytes"]) == (
        "vk.ceph-ssd",
        "vk",
        500 * 2**30,
    )
    assert printed["limits"] == {
        "read_iops": 15000,
        "write_iops": 7500,
        "read_bytes_per_second": 400 * MIB,
        "write_bytes_per_second": 400 * MIB,
        "budget": "separate",
        "budgets": {"iops": "separate", "bandwidth": "separate"},
        "latency_seconds": 0.003,
        "write_latency_seconds": None,
        "latency_kind": "indicative",
        "latency_time_share": None,
        "promised_time_share": None,
        "burst": None,
    }
    assert printed["conditions"]["iops"] == {"request_bytes": 4096, "queue_depth": 32}
    assert printed["sources"][0]["url"].startswith("https://cloud.vk.com/")
    assert printed["notes"] == []


def test_limits_json_with_provisioned_values_and_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gp3 = document(capsys, "aws.gp3", "20GiB", "--iops", "90000", "--bandwidth", "250MiB/s")
    assert gp3["limits"]["read_iops"] == 90000
    assert gp3["provisioned"] == {"iops": 90000, "bytes_per_second": 250 * MIB}
    assert gp3["notes"] == [
        "found 90000 provisioned IOPS for aws.gp3; expected 3000 to 10000 at this size"
    ]
    premium = document(capsys, "azure.Premium_LRS", "32GiB", "--option", "tier=P30")
    assert premium["terms"] == "azure.premium-ssd"
    assert premium["options"] == {
        "tier": "P30",
        "performance_plus": "off",
        "on_demand_burst": "off",
    }
    assert premium["limits"]["read_iops"] == 5000


def test_limits_json_prints_whole_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limits", "vk.ceph-ssd", "500GiB", "--json", "--request-size", "8KiB"]) == 0
    printed = capsys.readouterr().out
    assert '"effective_iops": 11250,' in printed
    assert '"read_iops": 15000,' in printed


@pytest.mark.parametrize(
    ("arguments", "promise", "enforced"),
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
def test_limits_json_with_effective_iops(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    promise: float | None,
    enforced: float | None,
) -> None:
    printed = document(capsys, *arguments)
    assert printed["effective_iops"] == pytest.approx(promise, abs=0.005)
    assert printed["effective_iops_enforced"] == pytest.approx(enforced, abs=0.005)


def test_limits_json_with_burst(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "yandex.network-hdd", "256GiB")["limits"]["burst"] == {
        "read_iops": 1200,
        "write_iops": 1200,
        "read_bytes_per_second": 120 * MIB,
        "write_bytes_per_second": 120 * MIB,
        "resource": "service_seconds",
        "capacity": 5400,
        "fill": 0.125,
        "length": "credits",
        "seconds": pytest.approx(5400 / 2.875),
        "buckets": [{"resource": "service_seconds", "capacity": 5400, "fill": 0.125}],
    }


def test_limits_json_without_limits_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "generic.nvme", "1TiB")
    assert set(printed["limits"].values()) == {None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("vk.cephssd", "500GiB"), "did you mean vk.ceph-ssd"),
        (("vk.ceph-ssd", "500"), "SIZE: '500' has no unit; expected a size such as 500GiB"),
        (("azure.ultra", "64GiB"), "azure.ultra needs provisioned IOPS; expected 100 to 64000"),
        (("aws.gp3", "5GiB", "--option", "tier"), "--option: found 'tier'; expected NAME=VALUE"),
        (("aws.gp3", "5GiB", "--option", "tier=P3"), "found option 'tier' of aws.gp3; expected"),
        (("vk.ceph-ssd", "0GiB"), "SIZE: '0GiB' is zero; expected a size"),
        (
            ("vk.ceph-ssd", "5GiB", "--request-size", "0KiB"),
            "--request-size: found '0KiB'; expected",
        ),
        (
            ("vk.ceph-ssd", "5GiB", "--request-size", "big"),
            "--request-size: found 'big'; expected",
        ),
        (("vk.ceph-ssd", "5GiB", "--write-share", "1.1"), "found '1.1'; expected a share from 0"),
        (("vk.ceph-ssd", "5GiB", "--write-share", "nan"), "found 'nan'; expected a share from 0"),
        (("vk.ceph-ssd", "5GiB", "--write-share=-0.1"), "found '-0.1'; expected a share from 0"),
        (
            ("vk.ceph-ssd", "5GiB", "--iops", "0"),
            "--iops: found '0'; expected a number above zero",
        ),
        (("vk.ceph-ssd", "5GiB", "--iops", "many"), "--iops: found 'many'; expected a number"),
        (("vk.ceph-ssd", "5GiB", "--iops", "4000"), "found provisioned IOPS; expected none: the"),
        (("vk.ceph-ssd", "5GiB", "--bandwidth", "0MB"), "--bandwidth: found '0MB'; expected"),
        (
            ("vk.ceph-ssd", "5GiB", "--bandwidth", "1MB/s"),
            "determines the bandwidth of vk.ceph-ssd",
        ),
        (("aws.gp3", "1TiB", "--machine", "m5.larg"), "'m5.larg' of aws; did you mean m5.large"),
        (("aws.gp3", "1TiB", "--vcpus", "4"), "found 4 vCPUs of aws; expected a machine type"),
        (("yandex.network-ssd", "1TiB", "--machine", "4"), "expected a number of vCPUs"),
        (("yandex.network-ssd", "1TiB", "--vcpus", "0"), "--vcpus: found '0'; expected a whole"),
        (("vk.ceph-ssd", "1TiB", "--machine", "m5.large"), "machines of VK Cloud are not known"),
    ],
)
def test_limits_rejects_invalid_arguments(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["limits", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_limits_text_of_options_and_notes(page: Page) -> None:
    printed = page("azure.premium-ssd", "2TiB", "--option", "on_demand_burst=on")
    assert "burst IOPS            30000       30000" in printed
    assert "at any time, without credits" in printed
    assert "99.9 % of the time" in printed
    printed = page("gcp.pd-ssd", "500GiB")
    assert "all such disks of a machine together" in printed
    assert "budget of IOPS" in printed
    assert "found 1 GiB for huawei.ssd" not in page("huawei.ssd", "500GiB")
    assert "low: the provider's own text was not read" in page("ovh.classic", "100GiB")


def test_limits_text_has_arithmetic_and_sources(page: Page) -> None:
    printed = page("vk.ef-nvme", "500GiB", "--request-size", "16KiB")
    assert "VK Cloud, Low Latency NVMe (vk.ef-nvme), 500 GiB" in printed
    assert "1172 MiB/s" in printed
    assert "75 x 500 GiB = 37500" in printed
    assert "0.5 ms, guaranteed" in printed
    assert "18750, at most 37500, for requests of 16 KiB, reads only" in printed
    assert "https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("vk.ef-nvme", "300GB", "--request-size", "5000B", "--write-share", "0.33"),
        ("yandex.network-hdd", "100GiB"),
        ("yandex.network-ssd-nonreplicated", "1TiB"),
        ("generic.hdd", "1TiB", "--write-share", "1"),
        ("yandex.network-ssd", "1TiB", "--vcpus", "4"),
        ("gcp.pd-ssd", "1TiB", "--machine", "n2-standard-8"),
    ],
)
def test_limits_text_fits_in_80_columns(page: Page, arguments: tuple[str, ...]) -> None:
    assert max(map(len, page(*arguments).splitlines())) <= 80


@pytest.mark.parametrize(
    ("terms", "size", "noted"),
    [
        ("vk.ceph-ssd", "500GB", True),
        ("vk.ceph-ssd", "500GiB", False),
        ("generic.ssd", "5GB", False),
    ],
)
def test_limits_text_notes_decimal_size(page: Page, terms: str, size: str, noted: bool) -> None:
    printed = " ".join(page(terms, size).split())
    assert ("VK Cloud writes GB for GiB: 500GB is 500 GiB" in printed) is noted
    assert ("500 GiB" in printed) is (terms == "vk.ceph-ssd")


def test_limits_of_a_size_in_the_gb_of_the_provider(page: Page) -> None:
    gib, gb = page("yandex.network-ssd", "300GiB"), page("yandex.network-ssd", "300GB")
    assert [line for line in gb.splitlines() if "writes GB" not in line] == gib.splitlines()
    assert "279.397 GiB" in " ".join(page("aws.gp3", "300GB").split())


def test_limits_text_has_credits_and_machine_limits(page: Page) -> None:
    printed = page("yandex.network-hdd", "600GiB")
    assert "594 s of baseline service, 31.3 min at the burst rate, 12 h" in printed
    assert "119.7 MiB/s" in printed
    assert "3500 IOPS per vCPU and 45 MiB/s per vCPU for all network" in printed


GP3 = ("aws.gp3", "1TiB", "--iops", "16000", "--bandwidth", "500MiB/s")


def test_limits_json_with_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert "machine" not in document(capsys, *GP3)
    machine = document(capsys, *GP3, "--machine", "M5.large")["machine"]
    assert (machine["name"], machine["vcpus"]) == ("m5.large", None)
    [group] = machine["groups"]
    assert group["name"] == "ebs"
    assert "aws.gp3" in group["covers"]
    assert group["date"] == "2026-11-21"
    assert group["limits"]["read_iops"] == 3600
    assert group["limits"]["read_bytes_per_second"] == 81_250_000
    burst = group["limits"]["burst"]
    assert (burst["read_iops"], burst["seconds"]) == (18750, 1800)
    assert burst["read_bytes_per_second"] == 593_750_000
    assert [bucket["capacity"] for bucket in burst["buckets"]] == [27_270_000, 922_500_000_000]
    assert machine["rates"] == {
        "read_iops": 3600,
        "write_iops": 3600,
        "read_bytes_per_second": 81_250_000,
        "write_bytes_per_second": 81_250_000,
    }
    assert machine["sources"][0]["revision"] == "getmoto/moto 5.2.5"
    assert machine["not_known"]


def test_limits_json_with_vcpus(capsys: pytest.CaptureFixture[str]) -> None:
    machine = document(capsys, "yandex.network-ssd", "64GiB", "--vcpus", "2")["machine"]
    assert (machine["name"], machine["vcpus"]) == (None, 2)
    assert [group["name"] for group in machine["groups"]] == ["replicated"]
    assert machine["groups"][0]["limits"]["read_iops"] == 7000
    assert machine["rates"]["read_iops"] == 2000


def test_limits_json_with_a_machine_that_does_not_limit_the_type(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("gcp.hyperdisk-balanced", "1TiB", "--machine", "n2-standard-8")
    assert document(capsys, *arguments)["machine"]["groups"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (*GP3, "--machine", "m5.large"),
            (
                "m5.large allows all EBS volumes of the instance together 3600 IOPS (18750 IOPS"
                " for 30 min), less than this disk, and 81.25 MB/s (593.75 MB/s for 30 min), less"
                " than this disk."
            ),
        ),
        (
            ("aws.gp3", "1TiB", "--iops", "60000", "--machine", "m5.large"),
            "3600 IOPS (18750 IOPS for 30 min), less than this disk, even in the burst, and",
        ),
        (
            ("gcp.pd-standard", "1TiB", "--machine", "n2-standard-8"),
            (
                "together 5000 IOPS for reads and 15000 IOPS for writes, more than these disks,"
                " and 800 MiB/s for reads and 400 MiB/s for writes, more than these disks."
            ),
        ),
        (
            ("gcp.pd-ssd", "10TiB", "--machine", "a3-highgpu-8g"),
            "together 80000 IOPS, less than these disks.",
        ),
        (
            ("yandex.network-ssd", "1280GiB", "--vcpus", "10"),
            (
                "A machine with 10 vCPUs allows all network SSDs and HDDs of the machine together"
                " 35000 IOPS, more than this disk for reads and less than this disk for writes,"
                " and 450 MiB/s, as much as this disk."
            ),
        ),
        (
            ("azure.premium-ssd", "1TiB", "--machine", "D2s_v3"),
            "Standard_D2s_v3: the cache of the host and the temporary disk together",
        ),
        (
            ("gcp.hyperdisk-balanced", "1TiB", "--machine", "n2-standard-8"),
            "n2-standard-8: no limit over gcp.hyperdisk-balanced is known.",
        ),
        (
            ("aws.gp3", "1TiB"),
            "has a limit over all EBS volumes of the instance together; --machine",
        ),
    ],
)
def test_limits_text_with_a_machine(page: Page, arguments: tuple[str, ...], sentence: str) -> None:
    printed = page(*arguments)
    assert sentence in " ".join(printed.split())
    assert "https://" in printed
