"""Tests of `disksla catalog`."""

import json

import pytest

from disksla.commands.cli import main
from disksla.promise.catalogue.catalog import load_catalog

Captured = pytest.CaptureFixture[str]


def test_catalog_table_fits_in_80_columns(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["catalog"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines[2:]]
    assert listed == [row.id for row in load_catalog().rows]


def test_catalog_of_a_provider(capsys: Captured) -> None:
    assert main(["catalog", "vk", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["provider"] for row in rows} == {"vk"}
    assert main(["catalog", "acme"]) == 2
    assert "unknown provider 'acme'; expected alibaba, aws," in capsys.readouterr().err


def test_catalog_json(capsys: Captured) -> None:
    assert main(["catalog", "--json"]) == 0
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
