"""Tests of `disksla limits`, also with the own catalogue of docs/configuration.md."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from disksla.commands.cli import main
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.limits import NO_LIMITS, Bucket, Burst, Rates
from disksla.tell.limits_text import limits_facts
from support.shell import refusals

Golden = Callable[[Path, str], None]

Captured = pytest.CaptureFixture[str]

Page = Callable[..., str]


def document(capsys: Captured, *arguments: str) -> dict[str, Any]:
    assert main(["limits", *arguments, "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


@pytest.fixture
def page(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Return a function that returns the output on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def shown(*arguments: str) -> str:
        assert main(["limits", *arguments]) == 0
        return capsys.readouterr().out

    return shown


def test_bandwidth_is_called_throughput_too(capsys: Captured) -> None:
    gp3 = ("aws.gp3", "1TiB", "--iops", "4000")
    assert document(capsys, *gp3, "--throughput", "250MiB/s") == document(
        capsys, *gp3, "--bandwidth", "250MiB/s"
    )


EXPECTED = Path(__file__).parent / "limits"
AS_JSON = {"separate", "credits", "without-limits", "beyond-the-catalogue", "option"}
AS_JSON |= {"file-storage", "machine", "machine-of-other-types", "vcpus"}
GP3 = "aws.gp3 1TiB --iops 16000 --bandwidth 500MiB/s"


@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "separate": "vk.ceph-ssd 500GiB --request-size 8KiB",
        "guaranteed": "vk.ef-nvme 500GiB --request-size 16KiB",
        "decimal": "vk.ef-nvme 300GB --request-size 5000B --write-share 0.33",
        "boost": "yandex.network-hdd 600GiB",
        "credits": "yandex.network-hdd 256GiB",
        "units": "yandex.network-ssd-nonreplicated 1TiB --request-size 4KiB",
        "without-limits": "generic.nvme 1TiB --write-share 1",
        "beyond-the-catalogue": "aws.gp3 20GiB --iops 90000 --bandwidth 250MiB/s",
        "option": "azure.Premium_LRS 32GiB --option tier=P30",
        "on-demand-burst": "azure.premium-ssd 2TiB --option on_demand_burst=on",
        "shared-by-disks": "gcp.pd-ssd 500GiB",
        "text-not-read": "ovh.classic 100GiB",
        "some-machine": "aws.gp3 1TiB",
        "machine": f"{GP3} --machine M5.large",
        "machine-without-its-burst": "aws.gp3 1TiB --iops 60000 --machine m5.large",
        "machine-above-the-disks": "gcp.pd-standard 1TiB --machine n2-standard-8",
        "machine-without-bandwidth": "gcp.pd-ssd 10TiB --machine a3-highgpu-8g",
        "machine-with-a-cache": "azure.premium-ssd 1TiB --machine D2s_v3",
        "machine-of-other-types": "gcp.hyperdisk-balanced 1TiB --machine n2-standard-8",
        "file-storage": "aws.efs 200GiB --option mode=bursting",
        "file-storage-unpublished": "yandex.filestore-ssd 100GiB",
        "file-storage-custom": "gcp.filestore 2TiB --option performance=custom --iops 8000",
        "vcpus": "yandex.network-ssd 1280GiB --vcpus 10",
    }.items(),
)
def test_text_and_json(
    name: str, arguments: str, page: Page, capsys: Captured, golden: Golden
) -> None:
    text = "\n".join(line.rstrip() for line in page(*arguments.split()).splitlines())
    assert all(len(line) <= 80 or "https://" in line for line in text.splitlines())
    assert main(["limits", *arguments.split(), "--json"]) == 0
    golden(EXPECTED / f"{name}.txt", f"$ disksla limits {arguments}\n{text}\n")
    out = capsys.readouterr().out
    if name in AS_JSON:
        golden(EXPECTED / f"{name}.json", out)


REFUSED = """
vk.cephssd 500GiB
vk.ceph-ssd 500
aws.gp3 5GiB --option tier
vk.ceph-ssd 0GiB
vk.ceph-ssd 5GiB --request-size 0KiB
vk.ceph-ssd 5GiB --request-size big
vk.ceph-ssd 5GiB --write-share 1.1
vk.ceph-ssd 5GiB --write-share nan
vk.ceph-ssd 5GiB --write-share=-0.1
vk.ceph-ssd 5GiB --iops 0
vk.ceph-ssd 5GiB --iops many
vk.ceph-ssd 5GiB --bandwidth 0MB
aws.gp3 1TiB --machine m5.larg
yandex.network-ssd 1TiB --machine 4
yandex.network-ssd 1TiB --vcpus 0
vk.ceph-ssd 1TiB --machine m5.large
"""


def test_limits_rejects_invalid_arguments(capsys: Captured, golden: Golden) -> None:
    golden(EXPECTED / "refused.txt", refusals(capsys, "limits", REFUSED))


def test_limits_of_a_size_in_the_gb_of_the_provider(page: Page) -> None:
    gib, gb = page("yandex.network-ssd", "300GiB"), page("yandex.network-ssd", "300GB")
    assert [line for line in gb.splitlines() if "writes GB" not in line] == gib.splitlines()
    assert "279.397 GiB" in " ".join(page("aws.gp3", "300GB").split())


def test_list_of_types_table_fits_in_80_columns(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["limits"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines[2:]]
    assert listed == [row.id for row in load_catalog().rows]


def test_list_of_types_of_a_provider(capsys: Captured) -> None:
    assert main(["limits", "vk", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["provider"] for row in rows} == {"vk"}
    assert main(["limits", "acme"]) == 2
    assert "unknown provider 'acme'; expected alibaba, aws," in capsys.readouterr().err


def test_list_of_types_json(capsys: Captured) -> None:
    assert main(["limits", "--json"]) == 0
    printed = capsys.readouterr().out
    rows = {row["id"]: row for row in json.loads(printed)}
    assert set(rows) == {row.id for row in load_catalog().rows}
    ssd = rows["vk.ceph-ssd"]
    assert ssd["aliases"] == ["vk.dp1-ssd", "vk.ko1-ssd"]
    assert ssd["read_iops"]["rule"] == "clamp"
    assert ssd["sources"][0]["date"] == "2026-08-21"
    assert rows["yandex.network-hdd"]["read_iops"]["per_unit"] == 300
    assert rows["yandex.network-hdd"]["examples"][0]["rates"]["read_iops"] == 300
    assert '"per_unit": 300,' in printed


DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "configuration.md"
CHAPTER = DOCUMENT.read_text(encoding="utf-8").partition("\n## Disk types of your own\n")[2]
DIRECTORY = "/etc/disksla"
"""Directory of the example."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", CHAPTER, re.DOTALL | re.MULTILINE)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the configuration file of the example, with its catalogue file."""
    catalog, settings = blocks("yaml")
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "openstack.yml").write_text(catalog)
    path = tmp_path / "disksla.yml"
    path.write_text(settings)
    return path


def test_check_config_counts_files_and_rows(config: Path, capsys: Captured) -> None:
    assert main(["check-config", "--config.file", str(config)]) == 0
    printed = capsys.readouterr().out.replace(str(config.parent), DIRECTORY)
    (example,) = blocks("console")
    assert f"$ disksla check-config --config.file {DIRECTORY}/disksla.yml\n{printed}" in example


def test_check_config_lists_wrong_cell_of_example(config: Path, capsys: Captured) -> None:
    file = config.parent / "catalog.d" / "openstack.yml"
    file.write_text(file.read_text().replace("write_iops: 1000\n", "write_iops: 10000\n", 1))
    assert main(["check-config", "--config.file", str(config)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [captured.err.replace(str(config.parent), DIRECTORY)] == blocks("text")


def test_check_config_lists_problems_of_all_files(config: Path, capsys: Captured) -> None:
    directory = config.parent / "catalog.d"
    (directory / "a.yml").write_text("terms: 5\n")
    config.write_text("sampling: {interval: 5}\ndisks: [{match: {device: vda}, terms: no.such}]\n")
    assert main(["check-config", "--config.file", str(config)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{directory}/a.yml:1: terms: found '5'; expected a list, each item a")
    assert second.startswith(f"{config}:1: sampling.interval: '5' has no unit")


def test_limits_of_own_type(config: Path, capsys: Captured) -> None:
    (example,) = blocks("console")
    (command,) = re.findall(r"^\$ disksla (limits .*)$", example, re.MULTILINE)
    assert main([*command.split(), f"--config.file={config}"]) == 0
    printed = capsys.readouterr().out
    assert "Acme Cloud, Ceph HDD (acme.standard), 500 GiB" in printed
    assert "10 x 500 GiB = 5000, at least 300" in printed


def test_catalog_lists_own_types(config: Path, capsys: Captured) -> None:
    assert main(["limits", f"--config.file={config}"]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "acme.fast" in line)
    assert row.split() == ["acme.fast", "-", "Ceph", "SSD"]


def test_limits_reports_bad_file(config: Path, capsys: Captured) -> None:
    (config.parent / "catalog.d" / "openstack.yml").write_text("term: []\n")
    assert main(["limits", "acme.fast", "1GiB", f"--config.file={config}"]) == 2
    assert "openstack.yml:1: term: unknown key (did you mean `terms`?)" in capsys.readouterr().err


def test_credits_that_are_filled_as_fast_as_they_are_used() -> None:
    bucket = Bucket("iops", 8000.0, 2000.0, 300.0, 2000.0)
    burst = Burst(Rates(2000.0, 2000.0), (bucket,))
    limits = msgspec.structs.replace(NO_LIMITS, burst=burst)
    assert "never empty, 4 s to refill" in dict(limits_facts(limits))["credits"]
