"""Sentences on what the provider counts of a disk."""

from disksla.provider_count.agreement import Agreement, agreement_of, explain_provider


def sentences(agreement: Agreement | None) -> list[str]:
    return list(explain_provider(agreement))


def test_nothing_is_said_without_a_count() -> None:
    assert sentences(None) == []
    assert sentences(Agreement()) == []


def test_disk_that_was_not_throttled() -> None:
    [sentence] = sentences(agreement_of(3600.0, [0.0] * 5, [0.0] * 4))
    assert sentence == (
        "The provider counts how long it throttles this disk: of 60 min, none, and the"
        " verdicts agree."
    )


def test_limits_by_the_count() -> None:
    agreement = agreement_of(3600.0, (80.0, 0, 0, 0, 20.0), (75.0, 0, 25.0, 0))
    [sentence] = sentences(agreement)
    assert sentence == (
        "The provider counts how long it throttles this disk: of 60 min, 75 s by the IOPS of the"
        " disk, 25 s by the IOPS of the machine. The limits named here are those that it counts."
        " By themselves, the verdicts agree in 100 % of the throttled time, and name the same"
        " limit in 75 %."
    )


def test_throttled_only_by_the_verdicts() -> None:
    [sentence] = sentences(agreement_of(3600.0, (80.0, 0, 0, 0, 0), [0.0] * 4))
    assert "of 60 min, none. The limits named" in sentence
    assert "agree in 0 % of the throttled time" in sentence
