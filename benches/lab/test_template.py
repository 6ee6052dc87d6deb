"""Random numbers of the scenarios of `make lab` and `make vm`. Needs no disks."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import lab.scenario
import vm.scenario
from lab.template import filled

SEEDS = st.integers(0, 10**6)
SCENARIO_SEEDS = 3
CHOICES = st.lists(st.sampled_from(["0ms", "100ms", 2, 0.5]), min_size=1, max_size=4)
FACTORS = st.integers(0, 3000).map(lambda thousandths: thousandths / 1000)


def bounds(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return rules with a lowest and a highest number."""
    return st.lists(numbers, min_size=2, max_size=2).map(
        lambda pair: {"from": min(pair), "to": max(pair)}
    )


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """Return a section `random`."""
    whole = {f"whole{number}": draw(bounds(st.integers(0, 10**6))) for number in range(2)}
    others = st.sampled_from(sorted(whole))
    factor = st.one_of(bounds(FACTORS), FACTORS.map(lambda factor: {"times": factor}))
    rest = st.one_of(
        CHOICES, st.tuples(others, factor).map(lambda pair: {"of": pair[0], **pair[1]})
    )
    return whole | draw(st.dictionaries(st.sampled_from("abcdef"), rest))


def text_of(section: dict[str, Any]) -> str:
    """Return a scenario that shows the values of all names."""
    shown = {"random": section, "out": {name: f"${name}" for name in section}}
    return yaml.safe_dump(shown, sort_keys=False)


def values_of(section: dict[str, Any], seed: int) -> dict[str, Any]:
    text = filled("name", text_of(section), seed)
    assert "$" not in text
    values: dict[str, Any] = yaml.safe_load(text)["out"]
    return values


@given(rules(), SEEDS)
def test_values_follow_their_rules(section: dict[str, Any], seed: int) -> None:
    values = values_of(section, seed)
    for name, rule in section.items():
        if isinstance(rule, list):
            assert values[name] in rule
            continue
        least, most = (rule.get("times", rule.get(key)) for key in ("from", "to"))
        number = values[rule["of"]] if "of" in rule else 1
        assert isinstance(values[name], int)
        assert number * least - 0.5 <= values[name] <= number * most + 0.5


@given(rules(), SEEDS)
def test_values_follow_from_the_seed_and_the_names_before(
    section: dict[str, Any], seed: int
) -> None:
    values = values_of(section, seed)
    assert values == values_of(section, seed)
    *before, _ = section
    fewer = values_of({name: section[name] for name in before}, seed)
    assert fewer == {name: values[name] for name in before}


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("3", "found 3; expected"),
        ("[]", r"found \[\]; expected"),
        ("{from: 3}", "found {'from': 3}; expected"),
        ("{from: 9, to: 3}", "expected .*from: LEAST, to: MOST"),
        ("{from: 0.5, to: 0.7}", "expected .*whole numbers"),
        ("{from: 1, to: 3, tims: 2}", "found .*tims.*; expected"),
        ("{of: above, times: 2, from: 1}", "expected .*of: NAME, times: FACTOR"),
        ("{of: above, from: a, to: b}", "expected .*of: NAME, from: LEAST, to: MOST"),
        ("{of: abvoe, times: 2}", "of: found abvoe; expected a name above"),
        ("{of: word, times: 2}", "of: found word; expected a name above that has a number"),
    ],
)
def test_invalid_rule_is_named(rule: str, why: str) -> None:
    text = f"random: {{above: {{from: 1, to: 3}}, word: [x], name: {rule}}}"
    with pytest.raises(ValueError, match=f"^deep: random: name: .*{why}"):
        filled("deep", text, 1)


def test_name_without_a_rule_is_named() -> None:
    with pytest.raises(ValueError, match=r"^deep: \$b: not in the section `random`"):
        filled("deep", "random: {a: [1]}\nout: $b\n", 1)
    with pytest.raises(ValueError, match=r"^deep: Invalid placeholder.*line 2"):
        filled("deep", "random: {a: [1]}\nout: $1\n", 1)


@pytest.mark.parametrize("name", lab.scenario.all_scenarios())
def test_scenario_of_the_lab_is_valid_for_three_seeds(name: str) -> None:
    path = lab.scenario.all_scenarios()[name]
    drawn = [lab.scenario.read_scenario(path, seed) for seed in range(SCENARIO_SEEDS)]
    captions = {scenario.caption for scenario in drawn}
    assert (len(captions) > 1) == bool(drawn[0].random)


@pytest.mark.parametrize("name", vm.scenario.all_scenarios())
def test_scenario_of_the_virtual_machine_is_valid_for_three_seeds(name: str) -> None:
    path = vm.scenario.all_scenarios()[name]
    captions = {vm.scenario.read_scenario(path, seed).caption for seed in range(SCENARIO_SEEDS)}
    assert len(captions) > 1
