"""How answers are compared."""

from engines.answers import answer_of, differences, sorted_values, within

LABELS = frozenset({("device", "vda")})


def response(*values: tuple[float, str]) -> dict[str, object]:
    result = [{"metric": {"device": "vda", "shared": ""}, "values": [list(one) for one in values]}]
    return {"data": {"resultType": "matrix", "result": result}}


def test_answer_has_no_nan_and_no_empty_labels() -> None:
    assert answer_of(response((1, "2.5"), (2, "NaN"))) == {LABELS: {1.0: 2.5}}
    assert answer_of(response((1, "NaN"))) == {}


def test_answer_of_a_vector_and_of_a_scalar() -> None:
    vector = {"resultType": "vector", "result": [{"metric": {}, "value": [1, "+Inf"]}]}
    assert answer_of({"data": vector}) == {frozenset(): {1.0: float("inf")}}
    scalar = {"resultType": "scalar", "result": [1, "2"]}
    assert answer_of({"data": scalar}) == {frozenset(): {1.0: 2.0}}


def test_differences_are_missing_extra_and_distant_samples() -> None:
    expected = {LABELS: {1.0: 1.0, 2.0: 2.0, 3.0: 3.0}}
    found = {LABELS: {1.0: 1.0 + 1e-10, 2.0: 2.1, 4.0: 4.0}}
    different = differences(expected, found, within(1e-9))
    assert [(each.time_s, each.expected, each.found) for each in different] == [
        (2.0, 2.0, 2.1),
        (3.0, 3.0, None),
        (4.0, None, 4.0),
    ]
    assert str(different[0]) == '{device="vda"} at 2: found 2.1; expected 2.0'
    assert not differences(expected, expected, within(0.0))


def test_values_are_compared_without_labels_where_equal_ones_are_selected() -> None:
    one = {LABELS: {1.0: 2.0}, frozenset({("device", "vdb")}): {1.0: 1.0}}
    assert sorted_values(one) == {1.0: [1.0, 2.0]}
