"""A slow disk without a limiter: pages, documents and recordings call it slow."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from disksla.commands._recent import FollowedStates, from_recording
from disksla.commands.cli import main
from disksla.promise.configuration import Configuration, ConfigurationText
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.serve.pages.page import Frame
from disksla.serve.pages.status_page import status_page
from disksla.state.history import History
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import FORMAT, RecordingHeader, encode
from disksla.tell.api.disks_document import disks_document
from disksla.tell.explanation import HistoryView
from disksla.tell.top.view import problem_now
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, run
from support.snapshots import ABOUT

PROMISING = SumTerms(iops=1000.0, latency_s=0.001)
SENTENCE = (
    " s requests took 20 ms each; 1 ms is promised (guaranteed): the disk is slow. No limit was"
    " seen that explains it."
)


@cache
def states() -> list[State]:
    scenario = replace(SCENARIOS["unlimited-slow"], terms=PROMISING)
    state = State(Configuration(scenario.settings(), CATALOG))
    found = []
    for tick in run(scenario).ticks:
        state = advance(state, tick)
        found.append(state)
    return found


def past() -> HistoryView:
    history = History()
    for state in states():
        history = history.after(state)
    return HistoryView(history)


def test_page_calls_it_slow() -> None:
    page = status_page(Snapshot(states()[-1]), ABOUT, past(), Frame("db-1", "0.2.0", "/metrics"))
    assert f"The disk: slow ({DEVICE}).</h1>" in page
    assert '<i class="slow"></i>The disk: slow</span>' in page
    assert SENTENCE in page.replace("reads", "requests")
    assert "Nothing was wrong" not in page


def test_document_calls_it_slow() -> None:
    [disk] = disks_document(Snapshot(states()[-1]), past(), "h", "v").disks
    assert disk.condition == problem_now(disk) == "slow"
    assert disk.bad_s == disk.slow_s > 5
    assert disk.last_minute[-3] == disk.charts.verdicts[-1] == "slow"
    whole_s = sum(disk.verdict_seconds.values())
    assert abs(sum(disk.conditions().values()) - whole_s) < 0.001


def test_replay_calls_it_slow(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = replace(SCENARIOS["unlimited-slow"], terms=PROMISING)
    terms = "{budget: sum, iops: 1000, latency: 1ms}"
    text = f"disks: [{{match: {{device: {DEVICE}}}, terms: {terms}}}]"
    header = RecordingHeader(FORMAT, 0.1, "6.1.0", "1", configuration=ConfigurationText(text))
    file = tmp_path / "ticks.jsonl"
    file.write_bytes(encode(header) + b"".join(map(encode, run(scenario).ticks)))
    assert main(["replay", str(file)]) == 0
    assert re.search(r"\d+% slow", capsys.readouterr().out)


def test_recording_calls_it_slow() -> None:
    [disk] = from_recording(FollowedStates(states())).disks.values()
    assert disk.condition == "slow"
    assert disk.sentences[0].replace("reads", "requests").endswith(SENTENCE)
