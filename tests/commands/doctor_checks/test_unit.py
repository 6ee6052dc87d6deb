"""The values of a unit of systemd."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.doctor_checks.facts import UnitFacts, parse_unit

SYSTEMD = Path(__file__).resolve().parents[3] / "systemd"
UNIT = (SYSTEMD / "disksla-exporter.service").read_text(encoding="utf-8")


def test_unit_of_the_package() -> None:
    unit = UnitFacts("unit", parse_unit([UNIT]))
    assert unit.last("User") == "disksla"
    assert unit.last("PrivateDevices") == "yes"
    assert unit.last("WantedBy") is None


def test_drop_ins_come_after_the_unit() -> None:
    folder = SYSTEMD / "disksla-exporter.service.d"
    texts = [UNIT, *(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.conf")))]
    unit = UnitFacts("unit", parse_unit(texts))
    assert unit.last("PrivateDevices") == "no"
    assert unit.last("SupplementaryGroups") == "disk"


def test_lines() -> None:
    text = "[Unit]\nA=0\n[Service]\n# A=1\n;A=2\nA = 3 \nB=x \\\n  y\nC\nD=1\nD=\nA=4\n"
    assert parse_unit([text]) == {"A": ("3", "4"), "B": ("x    y",), "D": ()}


@given(st.lists(st.text()))
def test_any_text_is_accepted(texts: list[str]) -> None:
    for key, values in parse_unit(texts).items():
        assert key == key.strip()
        assert all(values)
