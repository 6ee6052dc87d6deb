"""What `make consumers` compares. Needs no virtual machine."""

from collections import Counter

from vm.consumers import Seen, metrics_of, truth_of, unlike_truth, written_of

HISTOGRAM = """\
{ dev:    8388624, comm: postgres                                           } hitcount:         19
{ dev:  265289728, comm: kworker/u4:1                                       } hitcount:         29
{ dev:  265289728, comm: jbd2/vda-8                                         } hitcount:       3625
{ dev:  265289728, comm: postgres                                           } hitcount:      12687
{ dev:  265289728, comm: iou-wrk-123                                        } hitcount:          7
"""
PAGE = """\
disksla_consumer_requests_total{consumer="a.service",device="vda",program=""} 10.0
disksla_consumer_requests_total{consumer="a.service",device="vda",program="a"} 5.0
disksla_consumer_requests_total{consumer="a.service",device="sdb",program="a"} 7.0
disksla_consumer_bytes_total{consumer="kernel",device="vda",program=""} 4096.0
disksla_consumer_watched_seconds_total{device="vda"} 12.0
"""
STAT = """\
a.service 253:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0
a.service 8:16 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0
"""
TRUTH = Counter({"a.service": 900, "kernel": 100})
WRITTEN = Counter({"a.service": 4096})


def test_truth_is_by_unit_and_of_one_disk() -> None:
    expected = {"kernel": 3654, "database.service": 12687, "first.service": 7}
    assert truth_of(HISTOGRAM, 253 << 20) == expected


def test_metrics_and_io_stat_are_read_by_their_labels() -> None:
    assert metrics_of(PAGE, "vda") == ({"a.service": 15}, {"kernel": 4096})
    assert written_of(STAT, "253:0") == {"a.service": 12288}


def test_growth_is_by_unit() -> None:
    before = Seen(Counter(a=1), Counter(a=2), Counter(a=3), Counter(a=4))
    after = Seen(Counter(a=2), Counter(a=4), Counter(a=6), Counter(a=8))
    assert after.minus(before) == before


def test_shares_within_two_points_do_not_differ() -> None:
    found = Counter({"a.service": 440, "kernel": 60})
    assert list(unlike_truth(Seen(TRUTH, WRITTEN, found, WRITTEN))) == []


def test_small_consumers_may_have_no_series_of_their_own() -> None:
    truth = Counter({"a.service": 950, "b.service": 50})
    found = Counter({"a.service": 950, "other": 50})
    assert list(unlike_truth(Seen(truth, WRITTEN, found, WRITTEN))) == []


def test_each_difference_is_found() -> None:
    swapped = Counter({"a.service": 100, "kernel": 900})
    assert len(list(unlike_truth(Seen(TRUTH, WRITTEN, swapped, WRITTEN)))) == 2
    assert len(list(unlike_truth(Seen(TRUTH, WRITTEN, TRUTH, Counter())))) == 1
    few = Counter({"a.service": 9, "kernel": 1})
    assert len(list(unlike_truth(Seen(few, WRITTEN, few, WRITTEN)))) == 1
