"""iowait and pressure of the host, and their attribution to disks."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.iowait import HostWait, parse_pressure_s
from disksla.kernel.procfs.iowait_files import HostWaitFiles
from disksla.state.pipeline.state import needs_host_wait
from support.simulated_host import Machine, a_disk

times_s = st.floats(0, 1e9)
maybe_s = st.none() | times_s


def test_since_is_zero_where_iowait_decreases() -> None:
    assert HostWait(9.5, 5.5, 4.0).since(HostWait(10.0, 5.0, 4.0)) == HostWait(0.0, 0.5, 0.0)


def test_unknown_seconds_stay_none() -> None:
    assert HostWait(11.0).since(HostWait(10.0)) == HostWait(1.0)
    assert HostWait(11.0, 1.0, 1.0).since(HostWait()) == HostWait()
    assert HostWait(1.0, 2.0, 3.0) + HostWait(1.0) == HostWait(2.0)
    assert HostWait(1.0, 2.0, 3.0).where_known(HostWait(99.0)) == HostWait(1.0)


def test_shared_is_in_proportion_to_waiting() -> None:
    parts = HostWait(1.0, 0.5, None).shared({"vda": 3.0, "vdb": 1.0})
    assert parts == {"vda": HostWait(0.75, 0.375), "vdb": HostWait(0.25, 0.125)}


def test_shared_is_equal_without_waiting() -> None:
    parts = HostWait(1.0).shared({"vda": 0.0, "vdb": 0.0})
    assert parts == {"vda": HostWait(0.5), "vdb": HostWait(0.5)}


@given(
    st.builds(HostWait, maybe_s, maybe_s, maybe_s),
    st.dictionaries(st.text(), st.floats(0, 1e6), min_size=1, max_size=5),
)
def test_shares_add_up_to_the_whole(whole: HostWait, waited_s: dict[str, float]) -> None:
    parts = whole.shared(waited_s)
    assert parts.keys() == waited_s.keys()
    for field in HostWait.__struct_fields__:
        whole_s = getattr(whole, field)
        each_s = [getattr(part, field) for part in parts.values()]
        if whole_s is None:
            assert set(each_s) == {None}
        else:
            assert sum(each_s) == pytest.approx(whole_s, abs=1e-6)


def test_host_wait_is_read_at_first_and_while_throttled() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert needs_host_wait(machine.state)
    machine = Machine(a_disk())
    assert not needs_host_wait(machine.state)
    machine.does("vda", reads=30, read_ms=60, inflight=1)
    machine.tick()
    assert not needs_host_wait(machine.state)


TEXT = """\
some avg10=0.81 avg60=3.79 avg300=1.40 total=4940862
full avg10=0.77 avg60=3.69 avg300=1.36 total=4799013
"""


def test_parse_pressure_returns_seconds() -> None:
    assert parse_pressure_s(TEXT) == (4.940862, 4.799013)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "some total=1\n",
        TEXT.replace("total", "sum"),
        TEXT.replace("total=", f"total={10**400}"),
    ],
)
def test_parse_pressure_rejects_missing_totals(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines 'some' and 'full'"):
        parse_pressure_s(text)


@given(st.text())
def test_parse_pressure_rejects_any_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines 'some' and 'full'"):
        parse_pressure_s(text)


CPU = "cpu  100 0 50 1000 250 0 0 0 0 0\ncpu0 100 0 50 1000 250 0 0 0 0 0\n"
PRESSURE = "some avg10=0 avg60=0 avg300=0 total=2500000\nfull avg10=0 avg60=0 avg300=0 total=7\n"


def procfs(tmp_path: Path, cpu: str | None = CPU, pressure: str | None = PRESSURE) -> Path:
    (tmp_path / "pressure").mkdir()
    if cpu is not None:
        (tmp_path / "stat").write_text(cpu)
    if pressure is not None:
        (tmp_path / "pressure" / "io").write_text(pressure)
    return tmp_path


def test_iowait_and_pressure_are_in_seconds(tmp_path: Path) -> None:
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    host, problems = HostWaitFiles(procfs(tmp_path)).read()
    assert host == HostWait(250 / ticks_per_second, 2.5, 7e-6)
    assert problems == {}


def test_kernel_without_pressure_is_not_an_error(tmp_path: Path) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, pressure=None)).read()
    assert (host.pressure_some_s, problems) == (None, {})
    assert host.iowait_s is not None


def test_content_not_understood_is_an_error(tmp_path: Path) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, "cpu one\n", "some\n")).read()
    assert host == HostWait()
    assert set(problems) == {"iowait", "pressure"}


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    root = procfs(tmp_path, cpu=None, pressure=None)
    (root / "pressure" / "io").mkdir()
    host, problems = HostWaitFiles(root).read()
    assert host == HostWait()
    assert set(problems) == {"iowait", "pressure"}


def test_real_procfs_is_read() -> None:
    host, problems = HostWaitFiles(Path("/proc")).read()
    assert host.iowait_s is not None
    assert problems == {}


@pytest.mark.parametrize(
    "cpu", ["", "cpu\n", "cpu  1 2 3\n", "cpu  1 2 3 4 nan 6 7 8 9 10\n", "x\n"]
)
def test_invalid_iowait_is_an_error(tmp_path: Path, cpu: str) -> None:
    host, problems = HostWaitFiles(procfs(tmp_path, cpu)).read()
    assert host == HostWait(None, 2.5, 7e-6)
    assert problems.keys() == {"iowait"}
