"""Which machine this is, and which boot of it."""

import re
from pathlib import Path

import pytest

from disksla.system.machine_id import UNKNOWN_MACHINE, read_boot_id, read_machine_id
from disksla.system.roots import Roots

BOOT = "a7f0f4d0-2b0a-4c1d-9a0c-0f5f0f3a9b11"


def a_procfs(tmp_path: Path, boot_id: bytes) -> Roots:
    random = tmp_path / "sys" / "kernel" / "random"
    random.mkdir(parents=True)
    (random / "boot_id").write_bytes(boot_id)
    return Roots(procfs=tmp_path)


def test_the_boot_is_what_the_kernel_calls_it(tmp_path: Path) -> None:
    assert read_boot_id(a_procfs(tmp_path, f"{BOOT}\n".encode())) == BOOT


def test_this_boot_is_the_same_each_time_it_is_read() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", read_boot_id(Roots()))
    assert read_boot_id(Roots()) == read_boot_id(Roots())


def test_boots_that_are_not_known_are_never_the_same(tmp_path: Path) -> None:
    nowhere = Roots(procfs=tmp_path / "nowhere")
    assert read_boot_id(nowhere) != read_boot_id(nowhere)
    garbled = a_procfs(tmp_path, b"\xff\xfe\n")
    assert read_boot_id(garbled) != read_boot_id(garbled)


def test_the_machine_is_known_by_a_hash_of_its_id(tmp_path: Path) -> None:
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
def test_a_machine_without_an_id_is_unknown(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "machine-id"
    if content is not None:
        file.write_text(content)
    assert read_machine_id(file) == UNKNOWN_MACHINE
