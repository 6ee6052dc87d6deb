"""Identity of the machine and of its boot, and what the firmware says of it."""

import re
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import (
    DMI_ATTRIBUTES,
    UNKNOWN_MACHINE,
    Roots,
    read_boot_id,
    read_dmi,
    read_machine_id,
)

BOOT = "a7f0f4d0-2b0a-4c1d-9a0c-0f5f0f3a9b11"


def procfs_with(tmp_path: Path, boot_id: bytes) -> Roots:
    random = tmp_path / "sys" / "kernel" / "random"
    random.mkdir(parents=True)
    (random / "boot_id").write_bytes(boot_id)
    return Roots(procfs=tmp_path)


def test_boot_id_is_that_of_the_kernel(tmp_path: Path) -> None:
    assert read_boot_id(procfs_with(tmp_path, f"{BOOT}\n".encode())) == BOOT


def test_boot_id_of_this_machine_is_stable() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", read_boot_id(Roots()))
    assert read_boot_id(Roots()) == read_boot_id(Roots())


def test_unreadable_boot_ids_are_never_equal(tmp_path: Path) -> None:
    missing = Roots(procfs=tmp_path / "missing")
    assert read_boot_id(missing) != read_boot_id(missing)
    invalid = procfs_with(tmp_path, b"\xff\xfe\n")
    assert read_boot_id(invalid) != read_boot_id(invalid)


def test_machine_id_is_hashed(tmp_path: Path) -> None:
    file = tmp_path / "machine-id"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    machine = read_machine_id(file)
    assert re.fullmatch("[0-9a-f]{64}", machine)
    assert "0123456789abcdef" not in machine
    file.write_text("0123456789abcdef0123456789abcdef")
    assert read_machine_id(file) == machine
    file.write_text("1123456789abcdef0123456789abcdef\n")
    assert read_machine_id(file) != machine


@pytest.mark.parametrize("content", [None, "", "\n", "uninitialized\n"])
def test_machine_without_id_is_unknown(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "machine-id"
    if content is not None:
        file.write_text(content)
    assert read_machine_id(file) == UNKNOWN_MACHINE


def firmware(directory: Path, **attributes: str) -> Roots:
    files = directory / "class" / "dmi" / "id"
    files.mkdir(parents=True)
    for name, content in attributes.items():
        (files / name).write_text(content)
    return Roots(sysfs=directory)


def test_attributes_that_are_there_are_read(tmp_path: Path) -> None:
    roots = firmware(tmp_path, sys_vendor="Amazon EC2\n", chassis_asset_tag="\n", product_uuid="x")
    assert read_dmi(roots) == {"sys_vendor": "Amazon EC2"}


def test_machine_without_firmware(tmp_path: Path) -> None:
    assert read_dmi(Roots(sysfs=tmp_path)) == {}


def test_files_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    roots = firmware(tmp_path, product_name="CVM\n")
    (tmp_path / "class/dmi/id/sys_vendor").mkdir()
    assert read_dmi(roots) == {"product_name": "CVM"}


def test_long_and_binary_content_is_bounded(tmp_path: Path) -> None:
    roots = firmware(tmp_path, sys_vendor="x" * 100_000)
    (tmp_path / "class/dmi/id/product_name").write_bytes(b"\xff\xfe\n")
    assert read_dmi(roots) == {"sys_vendor": "x" * 256, "product_name": "��"}


def test_only_attributes_for_every_user_are_read() -> None:
    assert not [name for name in DMI_ATTRIBUTES if "uuid" in name or "serial" in name]
