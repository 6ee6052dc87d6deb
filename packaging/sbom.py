"""What a package is made of, as CycloneDX 1.5: `python packaging/sbom.py LIBRARIES REPORT`.

LIBRARIES is the directory that travels in the package, REPORT what pip said when it filled it.
The same package gives the same bytes.
"""

import argparse
import datetime as dt
import json
import os
import re
import sys
import uuid
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

US = "disksla-exporter"


def bill(directory: Path, report: Mapping[str, Any], made_s: int) -> dict[str, Any]:
    """Give the document; `report` is that of `pip install --report`.

    Raises ValueError if something lies in the directory that pip does not account for.
    """
    found = {_plain(one.name): one for one in distributions(path=[str(directory)])}
    wheels = {_plain(one["metadata"]["name"]): one["download_info"] for one in report["install"]}
    if found.keys() - wheels.keys() != {US}:
        raise ValueError(f"{directory} and the report of pip are not of one making")
    libraries = [_library(found[name], wheels[name]) for name in sorted(wheels)]
    when = dt.datetime.fromtimestamp(made_s, dt.UTC)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(found[US], "application"),
        },
        "components": libraries,
        "dependencies": [
            {"ref": _ref(one), "dependsOn": [_ref(found[name]) for name in _needs(one, found)]}
            for _, one in sorted(found.items())
        ],
    }
    name = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{name}"}


def _library(one: Distribution, wheel: Mapping[str, Any]) -> dict[str, Any]:
    sha256 = wheel["archive_info"]["hashes"]["sha256"]
    return {
        **_component(one, "library"),
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "properties": [{"name": "disksla:wheel", "value": wheel["url"].rpartition("/")[2]}],
    }


def _component(one: Distribution, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": _ref(one),
        "name": one.name,
        "version": one.version,
        "purl": _ref(one),
        "licenses": [_licence(one)],
    }


def _licence(one: Distribution) -> dict[str, Any]:
    """Give the licence as its author wrote it down: an expression of SPDX, or else a name."""
    told = one.metadata.json
    if expression := told.get("license_expression"):
        return {"expression": expression}
    classified = [
        text.rpartition(" :: ")[2] for text in told["classifier"] if text.startswith("License ::")
    ]
    return {"license": {"name": told.get("license") or classified[0]}}


def _needs(one: Distribution, found: Mapping[str, Distribution]) -> list[str]:
    """Name what it needs; what only extras or other systems need does not travel along."""
    needed = {
        _plain(match[0])
        for requirement in one.requires or []
        if "extra ==" not in requirement and (match := re.match(r"[\w.-]+", requirement))
    }
    return sorted(needed & found.keys())


def _ref(one: Distribution) -> str:
    return f"pkg:pypi/{_plain(one.name)}@{one.version}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("report", type=Path)
    given = parser.parse_args()
    report = json.loads(given.report.read_text(encoding="utf-8"))
    made = bill(given.libraries, report, int(os.environ["SOURCE_DATE_EPOCH"]))
    json.dump(made, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
