"""Pages and documents with the history of disks: cards, charts, the page of a disk, JSON."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.consumers import Consumption
from disksla.promise.catalogue import NO_LIMITS, Limits, Rates
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings import Settings
from disksla.serve.pages.charts import ChartPeriod, history_charts, period_until
from disksla.serve.pages.disk_page import disk_card, disk_page
from disksla.serve.pages.page import Frame, runbook_page
from disksla.serve.pages.status_page import status_page
from disksla.state.history.history import History
from disksla.state.history.slot import PackedSlots, RunningTotals, Slot, columns_of, total_slot
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.tell.api.disks_document import DisksDocument, disks_document
from disksla.tell.explanation.past import HistoryView
from disksla.tell.explanation.sentences import MachineLimit
from disksla.tell.page import html_of
from disksla.verdict.throttling import VERDICTS
from support.examples import scaled
from support.html_page import HtmlPage
from support.scenario_verdicts import lived
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG, reconfigured
from support.simulated_limiter import DEVICE, run
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    IOPS_CREDITS,
    changed,
    disk_view,
    group_view,
    view,
    views,
)

Golden = Callable[[Path, str], None]

FRAME = Frame("db-1", "0.2.0", "/metrics")
PERIOD = ChartPeriod("5 minutes", 300.0, 300.0, 1_800_000_000.0)
NUMBERS = st.floats(0, 1e6, width=32)
SLOTS = st.lists(
    st.builds(
        Slot,
        st.floats(0, 400),
        st.floats(0.1, 10),
        st.none() | st.floats(0, 1),
        st.builds(RunningTotals, *[NUMBERS] * len(RunningTotals.__struct_fields__)),
    ),
    max_size=12,
)


def encoded_and_decoded(document: DisksDocument) -> DisksDocument:
    return msgspec.json.decode(msgspec.json.encode(document), type=DisksDocument)


@scaled(60)
@given(SLOTS, st.sampled_from([NO_LIMITS, BURST_LIMITS, disk_view().assignment.limits]))
def test_charts_of_any_slots_are_svg_with_text(slots: list[Slot], limits: Limits) -> None:
    text = history_charts(slots, PERIOD, limits, "vdb")
    HtmlPage(text)
    assert "nan" not in text
    assert text.count('role="img"') == text.count("</figure>") + 1 >= 5


IDLE = [Slot(end, 1.0, None, RunningTotals(idle_s=1.0)) for end in range(1, 300, 5)]
READ = RunningTotals(reads=10.0, read_bytes=3 * 2**20, read_s=0.05)
APART = RunningTotals(
    reads=200.0, writes=100.0, least_writes=100.0, most_writes=100.0, read_s=1.0, write_s=2.0,
    read_bytes=2048.0, written_bytes=1024.0,
)  # fmt: skip
IN_DOUBT = RunningTotals(reads=5.0, writes=600.0, least_writes=295.0, most_writes=595.0)
FEW = RunningTotals(reads=5.0, read_s=1.0)
SEPARATE = disk_view().assignment.limits
EQUAL = msgspec.structs.replace(
    SEPARATE, rates=Rates(write_iops=50.0, read_iops=50.0), write_latency_s=0.01
)
CHARTS = {
    "equal columns are drawn as one": (IDLE, NO_LIMITS),
    "times of the clock, and a scale with units": ([Slot(300.0, 1.0, None, READ)], NO_LIMITS),
    "a gap breaks the line": ([Slot(at, 1.0, None, FEW) for at in (100, 200, 300)], NO_LIMITS),
    "reads and writes are apart": ([Slot(300.0, 1.0, 0.5, APART)], BURST_LIMITS),
    "the number of writes is in doubt": ([Slot(300.0, 1.0, None, IN_DOUBT)], BURST_LIMITS),
    "separate limits": ([Slot(300.0, 1.0, None, APART)], SEPARATE),
    "equal limits": ([], EQUAL),
}


def test_charts(golden: Golden) -> None:
    drawn = [
        f"{name}\n{history_charts(slots, PERIOD, limits, 'vdb')}\n"
        for name, (slots, limits) in CHARTS.items()
    ]
    lines = re.sub(r"(?=<(?:figure|path|line|text|rect|p ))", "\n", "\n".join(drawn))
    golden(Path(__file__).with_name("charts.txt"), lines)


def test_columns_keep_their_time() -> None:
    """A column that is complete is the same later: the cursor of the page stays with it."""
    before = period_until("5 minutes", 300.0, History(at_s=100.05, realtime_s=1_800_000_100.3))
    after = period_until("5 minutes", 300.0, History(at_s=104.95, realtime_s=1_800_000_105.2))
    later = period_until("5 minutes", 300.0, History(at_s=105.05, realtime_s=1_800_000_105.3))
    assert before == after
    assert (before.monotonic_s, before.end_s) == (105.0, 1_800_000_105)
    assert (later.monotonic_s, later.end_s) == (110.0, 1_800_000_110)


def test_slots_are_in_the_column_of_their_middle() -> None:
    totals = RunningTotals(reads=10.0, met_s=1.0)
    slots = [Slot(end, 1.0, None, totals) for end in (1.0, 7.0, 299.0, 300.0)]
    columns = columns_of(slots, 300.0, 5.0)
    assert [index for index, column in enumerate(columns) if column] == [0, 1, 59]
    last = columns[-1]
    assert last is not None
    assert (last.iops, last.verdict_s[VERDICTS.index("met")]) == (10.0, 2.0)


def test_sentences_are_about_the_time_since_the_limits_changed() -> None:
    scenario = SCENARIOS["iops-300-deep"]
    state, history = State(Configuration(Settings(), CATALOG)), History()
    ticks = run(scenario).ticks
    for index, tick in enumerate(ticks):
        if index == len(ticks) // 2:
            state = reconfigured(state, scenario.settings())
        state = advance(state, tick)
        history = history.after(state)
    [snapshot] = Snapshot(state).disks
    past = HistoryView(history)
    slots = past.seconds(snapshot)
    sentences = past.explain(snapshot, slots)
    assert len(slots) >= 9
    expected = "For [45][.0-9]* of the last [45][.0-9]* s the disk was throttled at its limit"
    assert re.match(expected, sentences[0])
    assert re.fullmatch(r"The limits of the disk changed [45][.0-9]* s ago\.", sentences[-1])
    assert not [sentence for sentence in sentences if "unknown limit" in sentence]
    whole = total_slot(slots)
    assert past.of(snapshot) is not None
    assert history.disks[DEVICE].with_limits([whole]) == []


def test_disk_that_is_new_under_an_old_name_has_no_past() -> None:
    snapshot, past = lived("iops-300-deep")
    [disk] = snapshot.disks
    other = changed(disk, disk=msgspec.structs.replace(disk.disk, minor=99))
    assert past.seconds(disk)
    assert past.seconds(other) == past.minutes(other) == []
    assert past.explain(other, [])[0].startswith("Nothing was measured")


@scaled(60)
@given(views)
def test_page_of_any_disk(snapshot: Snapshot) -> None:
    document = msgspec.to_builtins(disks_document(snapshot, HistoryView(), "db-1", "0.2.0"))
    assert len(document["disks"]) == len(snapshot.disks)
    for disk in document["disks"]:
        page = disk_page(snapshot, disk["device"], HistoryView(), FRAME)
        if page is not None:  # two names may look alike when they are escaped
            page.encode()
            HtmlPage(page)
    assert disk_page(snapshot, "none of them", HistoryView(), FRAME) is None


def as_text(page: str) -> str:
    """Return the text of each block of a page in a line, with the addresses of its links."""
    body = re.sub(r"(?s)<(style|script|svg).*?</\1>", "", page.partition("<header>")[2] or page)
    body = re.sub(r'<a href="(.*?)">(.*?)</a>', r"\2 (\1)", body)
    blocks = re.split(r"(?=<(?:h\d|p|dt|tr|figure|nav)[ >])", body)
    lines = (" ".join(re.sub("<.*?>", " ", block).split()) for block in blocks)
    return "\n".join([*filter(None, lines), ""])


def test_page_and_card_of_a_disk_with_everything(golden: Golden) -> None:
    throttled, past = lived("iops-300-deep")
    [disk] = throttled.disks
    at_s = past.history.at_s or 0.0
    used = (Consumption(DEVICE, "<b>.service", "rsync", requests=9.0),)
    lasting = msgspec.structs.replace(IOPS_CREDITS, resource="bytes", exhaustion_s=float("inf"))
    disk = changed(
        disk,
        disk=msgspec.structs.replace(disk.disk, claim="data-pg-0", namespace="db"),
        credits=(IOPS_CREDITS, lasting),
        consumers=disk.consumers.plus(
            (at_s - 5.0, at_s), used, is_throttled=True, may_be_named=None
        ),
    )
    totals = RunningTotals(
        reads=18_000, read_s=600.0, queue_s=600.0, wait_s=540.0, met_s=6.0, throttled_s=54.0,
        at_iops_s=54.0, flushes=60.0, flush_s=0.06,
    )  # fmt: skip
    minute = PackedSlots(last=(Slot(at_s, 60.0, None, totals).pack(),))
    history = msgspec.structs.replace(past.history.disks[DEVICE], packed_minutes=minute)
    past = HistoryView(
        msgspec.structs.replace(past.history, disks={DEVICE: history}),
        machine_limit=lambda *_: MachineLimit(group_view().shared, {}),
    )
    frame = FRAME._replace(dashboard="https://g/d/x?var-instance=a")
    page = disk_page(changed(throttled, disks=(disk,)), DEVICE, past, frame)
    assert page is not None
    card = html_of([disk_card(disk, past, past.seconds(disk))])
    golden(Path(__file__).with_name("disk.txt"), f"{as_text(page)}\n{as_text(card)}")


def test_document_has_what_commands_need() -> None:
    snapshot, past = lived("iops-300-deep")
    document = encoded_and_decoded(disks_document(snapshot, past, "db-1", "0.2.0"))
    [disk] = document.disks
    assert (document.host, document.version, disk.device) == ("db-1", "0.2.0", DEVICE)
    assert disk.sentences[0].startswith("For ")
    assert disk.throttled_seconds.keys() == {"iops"}
    assert disk.verdict_seconds["throttled"] == pytest.approx(9, abs=1)
    assert disk.latency_s == pytest.approx(0.107, rel=0.1)
    assert disk.bad_s == pytest.approx(disk.verdict_seconds["throttled"])
    assert disk.hour_sentences == ()
    assert disk.await_s == pytest.approx(0.107, rel=0.1)
    assert disk.queue_depth == pytest.approx(32, rel=0.1)
    assert disk.last_minute[-8:] == ("throttled",) * 8
    assert disk.last_minute[0] is None
    assert disk.charts.verdicts[-1] == "throttled"
    assert disk.charts.iops[-1] == pytest.approx(300, rel=0.1)
    assert disk.charts.iops[0] is disk.charts.credits_ratio[-1] is None
    assert (disk.claim, disk.machine_limits) == ("", ())


def test_document_has_credits_claim_and_machine() -> None:
    plain = disk_view(limits=BURST_LIMITS)
    claimed = msgspec.structs.replace(plain.disk, claim="data", namespace="shop")
    snapshot = view(changed(plain, disk=claimed))
    snapshot = changed(snapshot, groups=(group_view(),))
    [disk] = encoded_and_decoded(disks_document(snapshot, HistoryView(), "h", "v")).disks
    assert disk.credits[0].ratio == 0.3125
    assert disk.claim == "shop/data"
    assert disk.machine_limits[0].limits.startswith("m5.large: 3600 IOPS")
    assert disk.machine_limits[0].load_ratio == 0.98
    assert disk.await_s is disk.queue_depth is None


def test_verdict_that_is_late_is_that_of_the_second_before() -> None:
    snapshot, past = lived("iops-300-deep")
    history = past.history.disks[DEVICE]
    none, below = RunningTotals(), RunningTotals(below_s=2.0)
    seconds = [Slot(end, 1.0, None, totals).pack() for end, totals in
               ((5.0, none), (6.0, below), (8.0, none), (9.0, below), (10.0, none))]  # fmt: skip
    packed = PackedSlots(last=tuple(seconds))
    late = History({DEVICE: msgspec.structs.replace(history, packed_seconds=packed)}, 10.0)
    [disk] = disks_document(snapshot, HistoryView(late), "h", "v").disks
    assert disk.last_minute[-6:] == ("below", "below", None, "below", "below", None)


def test_numbers_of_the_last_second_are_absent_after_a_gap() -> None:
    snapshot, past = lived("iops-300-deep")
    later = HistoryView(msgspec.structs.replace(past.history, at_s=(past.history.at_s or 0.0) + 3))
    [disk] = disks_document(snapshot, later, "h", "v").disks
    assert (disk.await_s, disk.queue_depth, disk.last_minute[-1]) == (None, None, None)
    assert disk.last_minute[-4] == "throttled"


def test_runbook_has_an_anchor_for_each_alert() -> None:
    page = runbook_page(FRAME)
    HtmlPage(page)
    assert '<h2 id="DiskBelowPromise">DiskBelowPromise</h2>' in page
    targets = set(re.findall('href="#(.*?)"', page))
    assert targets <= set(re.findall('id="(.*?)"', page))
    assert not re.search(r'href="(?!#|/|https://)', page)


def test_disks_with_problems_are_named_and_come_first() -> None:
    throttled, past = lived("iops-300-deep")
    [disk] = throttled.disks
    calm = changed(disk, disk=msgspec.structs.replace(disk.disk, name="a", minor=99))
    both = changed(throttled, disks=(calm, disk))
    page = status_page(both, ABOUT, past, FRAME)
    assert "1 of 2 disks had a problem in the last 9.9 s." in page
    assert f"You: throttled at the limit you bought ({DEVICE}).</h1>" in page
    assert page.index(f">{DEVICE}</a>") < page.index(">a</a>")
    assert "</i>You: throttled at the limit you bought</span>" in page
    assert ">No problem was seen in the last 0 s." in status_page(
        view(disk_view()), ABOUT, HistoryView(), FRAME
    )


def test_many_disks_have_short_cards_and_are_not_all_named() -> None:
    throttled, past = lived("iops-300-deep")
    [disk] = throttled.disks
    others = tuple(
        changed(
            disk, disk=msgspec.structs.replace(disk.disk, name=f"sd{number}", minor=number + 99)
        )
        for number in range(20)
    )
    of_one = past.history.disks[DEVICE]
    histories = {
        each.disk.name: msgspec.structs.replace(
            of_one, disk_state=msgspec.structs.replace(of_one.disk_state, disk=each.disk)
        )
        for each in (*others[:9], disk)
    }
    many = HistoryView(msgspec.structs.replace(past.history, disks=histories))
    page = status_page(changed(throttled, disks=(*others[::-1], disk)), ABOUT, many, FRAME)
    assert "10 of 21 disks had a problem" in page
    assert "sd8, sd7, sd6, sd5, sd4, sd3, sd2, sd1 and 2 more).</h1>" in page
    assert page.count("<article") == 20
    assert page.count("<figcaption>Queue depth <b>") == 12
    assert page.index('data-key="cards brief"') < page.index(">sd10</a>")
    assert "<summary>1 other disks" in page
    HtmlPage(page)


def test_colours_of_verdicts_differ_from_the_background() -> None:
    """The contrast that WCAG requires of graphics, in both themes."""
    page = runbook_page(FRAME)
    sheets = re.findall(r"--sheet: (#[0-9a-f]{6});", page)
    colours = re.findall(r"--verdict: (#[0-9a-f]{6});", page)
    assert (len(sheets), len(colours)) == (2, 6)
    for sheet in sheets:
        for colour in colours:
            darker, lighter = sorted((luminance(sheet), luminance(colour)))
            assert (lighter + 0.05) / (darker + 0.05) >= 3, (sheet, colour)


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_pages_link_to_the_dashboard_that_is_configured() -> None:
    frame = FRAME._replace(dashboard="https://g/d/disksla-disk")
    page = disk_page(view(disk_view()), "vdb", HistoryView(), frame)
    assert page is not None
    assert '<a href="https://g/d/disksla-disk?var-device=vdb">Grafana</a>' in page
    assert '<a href="https://g/d/disksla-disk">Grafana</a>' in frame.page("Disks", "")
    assert "Grafana" not in FRAME.page("Disks", "")
