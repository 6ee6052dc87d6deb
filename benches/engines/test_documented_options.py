"""The commands of docs/fleet.md are found, and are completed as the tests need them."""

import json

import pytest

from engines.documented import blocks, options, with_values

PROGRAMS = (
    "thanos receive",
    "thanos query",
    "thanos rule",
    "thanos sidecar",
    "victoria-metrics",
    "vmagent",
    "vmalert",
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_has_one_command(program: str) -> None:
    assert all(option.startswith("-") for option in options(program))


def test_hashring_is_that_of_the_command() -> None:
    [hashring] = map(json.loads, blocks("json"))
    [local] = [
        value
        for name, _, value in (option.partition("=") for option in options("thanos receive"))
        if name == "--receive.local-endpoint"
    ]
    assert local in hashring[0]["endpoints"]
    assert set(hashring[0]["endpoints"]) <= {
        option.partition("=")[2] for option in options("thanos query")
    }


def test_values_replace_documented_ones() -> None:
    found = ["-rule=a", "-rule=b", "-quiet"]
    assert with_values(found, {"-rule": ["c", "d"], "-new": "e", "-switch": ""}) == [
        "-quiet",
        "-rule=c",
        "-rule=d",
        "-new=e",
        "-switch",
    ]
