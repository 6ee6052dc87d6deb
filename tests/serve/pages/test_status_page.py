"""The status page, read as HTML."""

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import example, given

from disksla.base.histogram import Histogram
from disksla.base.text import escape_control
from disksla.promise.catalogue import SharedLimits
from disksla.promise.catalogue.limits import NO_LIMITS, Limits, Rates, build_limits
from disksla.serve.metrics.self_metrics import BuildInfo
from disksla.serve.pages.page import CONTENT_SECURITY_POLICY, Frame
from disksla.serve.pages.status_page import status_page
from disksla.state.pipeline.snapshot import DiskSnapshot, SamplerStats, Snapshot
from disksla.tell.explanation.past import HistoryView
from disksla.verdict.throttling.throttle import UNKNOWN_LIMIT, Ceiling, Throttle
from disksla.verdict.throttling.verdict import Verdict
from support.examples import scaled
from support.html_page import HtmlPage
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    SAMPLER,
    KnownSnapshot,
    changed,
    disk_view,
    group_view,
    unknown_disk_view,
    view,
    views,
)

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "strong", "h1", "small", "nav",
    "a", "p", "main", "article", "h2", "svg", "g", "rect", "line", "path", "text", "figure",
    "b", "i", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "meter",
    "code", "script", "output", "time", "dl", "dt", "dd", "details", "summary",
}  # fmt: skip
FRAME = Frame("db-1", "0.2.0", "/metrics")
HOSTILE = "<script>alert(1)</script>\"'&\udcff"


def page(snapshot: Snapshot, build_info: BuildInfo = ABOUT) -> str:
    return status_page(snapshot, build_info, HistoryView(), FRAME)


def read(text: str) -> HtmlPage:
    found = HtmlPage(text)
    assert found.tags <= ALLOWED
    return found


@scaled(80)
@given(views)
@example(view(disk_view(HOSTILE, hostile=HOSTILE)))
def test_names_of_disks_are_escaped(snapshot: Snapshot) -> None:
    text = page(snapshot)
    rows = read(text).rows
    assert len(rows) == (1 + len(snapshot.disks) if snapshot.disks else 0)
    disks = sorted(snapshot.disks, key=lambda each: each.disk.name)
    for row, disk in zip(rows[1:], disks, strict=True):
        assert len(row) == 9
        shown = "".join(row[0].split())
        for name in (disk.disk.name, disk.disk.model or "", disk.disk.serial or ""):
            assert "".join(escape_control(name).split()) in shown


def test_of_many_disks_twenty_are_shown_and_the_others_are_links() -> None:
    names = [f"vd{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrstuvwxy"]
    text = page(view(*map(disk_view, names)))
    assert len(read(text).rows) == 1 + 20
    assert text.count("<article") == 20
    assert "<summary>480 other disks" in text
    others = text.partition("<details")[2].partition("</details>")[0]
    assert re.findall(r'href="/disk\?name=(\w+)"', others) == names[20:]
    assert len(text) < 120_000


def throttled_at(
    name: str, throttle: Throttle, limits: Limits = BURST_LIMITS, verdict: Verdict = "throttled"
) -> DiskSnapshot:
    disk = disk_view(name, limits=limits)
    ceiling = Ceiling(throttle, 300.0, 300.0 * 65536)
    now = throttle if verdict == "throttled" else None
    return changed(disk, verdict=verdict, ceiling=ceiling, throttle=now)


BY_IOPS, SOLD = Throttle("base", "iops"), build_limits(Rates(400.0, 400.0), "sum")
DISKS = (
    disk_view("vda", limits=BURST_LIMITS),
    throttled_at("vdb", Throttle("base", "bandwidth")),
    throttled_at("vdc", BY_IOPS, verdict="met"),
    changed(throttled_at("vdd", BY_IOPS), ceiling=Ceiling(BY_IOPS, None, None, 0.1)),
    throttled_at("vde", UNKNOWN_LIMIT, SOLD),  # the only one that its terms should explain
    throttled_at("vdf", UNKNOWN_LIMIT, NO_LIMITS),
    throttled_at("vdg", UNKNOWN_LIMIT, SOLD, verdict="met"),
    throttled_at("vdh", BY_IOPS, SOLD),
    throttled_at("vdi", Throttle("base", "machine_iops")),
    disk_view("vdj", limits=Limits(rates=Rates(write_iops=400.0), latency_s=0.001)),
    disk_view("vdk", load_now=1.37),
    disk_view("vdl", totals=None),
    unknown_disk_view("vdm"),
)
WRITTEN_OUT = changed(
    group_view(),
    shared=SharedLimits("configuration", HOSTILE, "", NO_LIMITS),
    throttled_s={"iops": 0.0},
    credits=(),
)


def test_page_of_every_kind_of_disk(golden: Callable[[Path, str], None]) -> None:
    problems = {f"inflight:vd{number}": "<gone>" for number in range(12)}
    sampler = msgspec.structs.replace(SAMPLER, problems=problems)
    failed = msgspec.structs.replace(ABOUT, reload_successful=False)
    text = page(KnownSnapshot(DISKS, sampler, (group_view(), WRITTEN_OUT)), failed)
    found = read(text)
    lines = re.findall("<p[ >].*?</p>", text.partition("<h2>Limits and rates")[2])
    alarms = re.findall('<p class="alarm">.*?</p>|<p>inflight.*?</p>|<p>and .*?</p>', text)
    rows = [" | ".join(row) for row in found.rows]
    golden(Path(__file__).with_name("status.txt"), "\n".join([*alarms, *rows, *lines, ""]))
    assert [each["value"] for each in found.of("meter")].count("1.000") == 1  # at most the limit


def test_page_without_disks_has_a_hint() -> None:
    assert "No disk is monitored" in page(view())
    assert "The last reload failed" not in page(view())


def sampler_line(lateness_s: Histogram) -> str:
    sampler = SamplerStats(10, 0, lateness_s, {"late": 0}, {"diskstats": 0})
    line = re.search("<p>Sampler: .*</p>", page(KnownSnapshot((), sampler)))
    assert line is not None
    return line[0]


def test_sampler_line_shows_lateness_gaps_and_errors() -> None:
    on_time = Histogram((0.001, 0.01), (990, 10, 0))
    late = Histogram((0.001, 0.01), (900, 10, 90))
    assert "10 ticks, 0 missed, 99 % at most 1 ms late. Gaps: none. Errors: none." in (
        sampler_line(on_time)
    )
    assert "1 % more than 10 ms late" in sampler_line(late)
    assert "Gaps: late 3, swapped 1. Errors: inflight 2." in page(KnownSnapshot((), SAMPLER))
    failed = msgspec.structs.replace(SAMPLER, errors={"diskstats": 0, "sampler": 7})
    assert "Errors: sampler 7." in page(KnownSnapshot((), failed))


def test_content_security_policy_allows_what_is_in_the_page_by_its_hash() -> None:
    for tag in ("style", "script"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page(view()), re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
