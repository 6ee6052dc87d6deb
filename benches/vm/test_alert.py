"""What `make alert` compares. Needs no virtual machine."""

from typing import Any

import pytest

from vm.alert import unlike_alert, unlike_known, unlike_unknown

UNKNOWN = (
    "For 9 of the last 10 s the disk served the load, and there is no promise to compare it with:"
    " 87 IOPS, 348 KiB/s."
)
KNOWN = "For 9 of 10 s the disk was throttled at its limit of\n88 IOPS (baseline)."
ALERT: dict[str, Any] = {
    "labels": {"device": "vda"},
    "annotations": {
        "runbook_url": "http://a:1/runbook#DiskThrottled",
        "description": "It is throttled. Most requests: qemu-guest-agent.service.",
    },
}


def test_expected_sentences_and_alert_do_not_differ() -> None:
    assert list(unlike_unknown(UNKNOWN, 88)) == []
    assert list(unlike_known(KNOWN, 88)) == []
    assert list(unlike_alert([ALERT], "vda", "a:1")) == []


@pytest.mark.parametrize("said", [KNOWN, UNKNOWN.replace("87", "70"), "The disk was idle."])
def test_each_difference_without_terms_is_found(said: str) -> None:
    assert len(list(unlike_unknown(said, 88))) == 1


@pytest.mark.parametrize("said", [UNKNOWN, KNOWN.replace("88", "89"), "The disk was idle."])
def test_each_difference_with_terms_is_found(said: str) -> None:
    assert list(unlike_known(said, 88))


@pytest.mark.parametrize(
    ("alerts", "device"),
    [
        ([], "vda"),
        ([ALERT], "vdb"),
        ([ALERT | {"annotations": ALERT["annotations"] | {"runbook_url": ""}}], "vda"),
        ([ALERT | {"annotations": ALERT["annotations"] | {"description": "No."}}], "vda"),
    ],
)
def test_each_difference_of_the_alert_is_found(alerts: list[dict[str, Any]], device: str) -> None:
    assert len(list(unlike_alert(alerts, device, "a:1"))) == 1
