"""The files of the operator: the configuration file, and the catalogue files beside it."""

from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.settings_file import (
    beyond_catalog,
    catalog_directory,
    file_in_force,
    read_configuration,
)

ROW = """
terms:
  - id: acme.disk
    title: A disk
    provider: acme
    provider_name: Acme
    examples: [{size_bytes: 1GiB, rates: {}}]
"""


def test_catalog_directory_is_beside_the_file() -> None:
    assert catalog_directory(Path("/srv/a/disksla.yml")) == Path("/srv/a/catalog.d")
    assert catalog_directory(Path("disksla.yml")) == Path("catalog.d")
    assert catalog_directory(None) == Path("/etc/disksla/catalog.d")


def test_default_file_applies_where_it_exists_and_no_other_is_named(tmp_path: Path) -> None:
    default, named = tmp_path / "disksla.yml", tmp_path / "named.yml"
    assert file_in_force(None, default) is None
    assert file_in_force(named, default) == named
    default.touch()
    assert file_in_force(None, default) == default
    assert file_in_force(named, default) == named


def test_default_file_that_cannot_be_examined_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    default = tmp_path / "file" / "disksla.yml"
    assert file_in_force(None, default) == default


def test_configuration_has_rows_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "a.yml").write_text(ROW)
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: vda}, terms: acme.disk}]\n")
    configuration = read_configuration(file)
    assert configuration.catalog["acme.disk"].title == "A disk"
    assert [entry.terms for entry in configuration.settings.disks] == ["acme.disk"]


def test_file_storage_is_no_terms_of_a_disk(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: vda}, terms: aws.efs}]\n")
    with pytest.raises(
        DiskslaError,
        match=r"disks\[0\]: found aws\.efs, a network file storage; expected a type of disk",
    ):
        read_configuration(file)


def test_disk_is_no_terms_of_a_mount(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: 'fs1:/export'}, terms: aws.gp3}]\n")
    with pytest.raises(
        DiskslaError,
        match=r"disks\[0\]: found aws\.gp3, a type of disk; expected a network file storage",
    ):
        read_configuration(file)


def test_entries_beyond_the_catalogue_are_named(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("""
disks:
  - {match: {device: vda}, terms: aws.gp3, iops: 6000}
  - {match: {device: vdb}, terms: aws.gp3, iops: 6000, size: 10GiB}
  - {match: {device: vdc}, terms: aws.st1, size: 100GiB}
  - {match: {device: vdd}, terms: {budget: sum, iops: 300}}
  - {match: {device: vde}, terms: azure.PremiumV2_LRS, iops: 90000}
""")
    assert beyond_catalog(read_configuration(file)) == [
        (
            "disks[1]: 6000 IOPS of aws.gp3: above what AWS sells"
            " (catalogue: 3000 to 5000 at this size)"
        ),
        "disks[2]: found 100 GiB for aws.st1; expected 125 GiB to 16 TiB",
        (
            "disks[4]: 90000 IOPS of azure.premium-ssd-v2: above what Microsoft Azure sells"
            " (catalogue: 3000 to 80000 at this size)"
        ),
    ]


def test_configuration_without_catalog_directory(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.touch()
    configuration = read_configuration(file)
    assert configuration.settings == Settings()
    assert configuration.catalog["vk.ceph-ssd"].provider == "vk"


def test_bad_catalog_file_does_not_hide_other_problems(tmp_path: Path) -> None:
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "a.yml").write_text("terms: [\n")
    file = tmp_path / "disksla.yml"
    file.write_text(
        "disks: [{match: {device: vda}, terms: acme.disk}]\n"
        "probes: [{kind: read-latency, cron: '* * * * 1'}]\n"
    )
    with pytest.raises(DiskslaError) as caught:
        read_configuration(file)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path}/catalog.d/a.yml:2: not valid YAML")
    assert second.startswith(f"{file}:2: probes[0].cron: found '* * * * 1'; expected minute,")
