"""Reading of what the firmware says of the machine."""

from pathlib import Path

from disksla.system.dmi import ATTRIBUTES, read_dmi
from disksla.system.roots import Roots


def machine(directory: Path, **attributes: str) -> Roots:
    files = directory / "class" / "dmi" / "id"
    files.mkdir(parents=True)
    for name, content in attributes.items():
        (files / name).write_text(content)
    return Roots(sysfs=directory)


def test_attributes_that_are_there_are_read(tmp_path: Path) -> None:
    roots = machine(tmp_path, sys_vendor="Amazon EC2\n", chassis_asset_tag="\n", product_uuid="x")
    assert read_dmi(roots) == {"sys_vendor": "Amazon EC2"}


def test_machine_without_firmware(tmp_path: Path) -> None:
    assert read_dmi(Roots(sysfs=tmp_path)) == {}


def test_files_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    roots = machine(tmp_path, product_name="CVM\n")
    (tmp_path / "class/dmi/id/sys_vendor").mkdir()
    assert read_dmi(roots) == {"product_name": "CVM"}


def test_long_and_binary_content_is_bounded(tmp_path: Path) -> None:
    roots = machine(tmp_path, sys_vendor="x" * 100_000)
    (tmp_path / "class/dmi/id/product_name").write_bytes(b"\xff\xfe\n")
    assert read_dmi(roots) == {"sys_vendor": "x" * 256, "product_name": "��"}


def test_only_attributes_for_every_user_are_read() -> None:
    assert not [name for name in ATTRIBUTES if "uuid" in name or "serial" in name]
