"""Facts of a daemon, or of another program on its port, and of a unit of systemd."""

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.doctor_checks.facts import UnitFacts, parse_unit
from disksla.commands.doctor_checks.gather_facts import ask_daemon, parse_samples
from support.answering import answering, page


def test_samples_are_read() -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\nnever scraped\n"), page(body)) as url:
        facts = ask_daemon(url)
    assert facts.problem is None
    assert facts.ready_text == "ready\nnever scraped"
    [sample] = facts.values("disksla_build_info", version="1")
    assert sample.value == 1


@pytest.mark.parametrize(
    "body", ["<html>", "disksla_build_info{", "x 1 2 3 4", "\0", "a{b} c", "{, =1"]
)
def test_page_that_is_not_of_metrics(body: str) -> None:
    with answering(page("", 404), page(body)) as url:
        facts = ask_daemon(url)
    assert (facts.ready_status, facts.metrics_status) == (404, 200)
    assert facts.values("disksla_build_info") == []


WORDS = ("# HELP ", "# TYPE ", "a", "counter", "{", "}", "=", '"', "\\", ",", " ", "\n", "1")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map("".join))
def test_any_text_has_samples_or_none(text: str) -> None:
    for sample in parse_samples(text):
        assert sample.name.removesuffix("_total") in text


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP: BadStatusLine"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_another_protocol(answer: bytes, problem: str) -> None:
    with answering(answer) as url:
        assert ask_daemon(url).problem == problem


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert ask_daemon(url).problem == "Connection refused"


def test_tls_that_the_other_side_does_not_speak() -> None:
    with answering(page("ready\n")) as url:
        facts = ask_daemon(url.replace("http:", "https:"))
    assert "TLS failed" in (facts.unseen or "")


def test_unix_socket_is_asked(tmp_path: Path) -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\n"), page(body), path=tmp_path / "socket") as url:
        facts = ask_daemon(url)
    assert (facts.url, facts.ready_status, facts.metrics_status) == (url, 200, 200)
    assert facts.values("disksla_build_info", version="1")


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
