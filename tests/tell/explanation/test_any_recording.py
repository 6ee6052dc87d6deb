"""Sentences and pages about any sequence of samples: they are made, and have numbers."""

import re
from itertools import accumulate

from hypothesis import example, given

from disksla.base.text import escape_bytes
from disksla.commands._recent import FollowedStates, from_recording, sentences_of
from disksla.serve.pages.disk_page import disk_page
from disksla.serve.pages.page import Frame
from disksla.serve.pages.status_page import status_page
from disksla.state.history import history_of
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.tell.explanation import HistoryView
from support.changed_recordings import RECORDINGS, ChangedRecording, changed_recordings
from support.snapshots import ABOUT

FRAME = Frame("host", "1.0", "/metrics", "")
NOT_A_NUMBER = re.compile(r"\b(?:nan|inf)\b")


NFS = RECORDINGS[[path.name for path in RECORDINGS].index("nfs-stalled.rec.gz")]


@given(changed_recordings)
@example(ChangedRecording(NFS, ["out of order", "metadata"], has_close=False, seed=949))
def test_every_page_has_numbers(recording: ChangedRecording) -> None:
    state, ticks = recording.read()
    states = [state, *accumulate(ticks, advance, initial=state)]
    snapshot, past = Snapshot(states[-1]), HistoryView(history_of(states))
    pages = [status_page(snapshot, ABOUT, past, FRAME)]
    for disk in snapshot.disks:
        page = disk_page(snapshot, escape_bytes(disk.disk.name), past, FRAME)
        assert page is not None
        pages.append(page)
    found = from_recording(FollowedStates(states))
    pages += [sentence for each in found.disks.values() for sentence in sentences_of(each)]
    pages += [sentence for each in found.writes.values() for sentence in each]
    assert [page for page in pages if NOT_A_NUMBER.search(page)] == []
