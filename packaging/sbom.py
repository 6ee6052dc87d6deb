"""Write the bill of materials in CycloneDX 1.5: `python packaging/sbom.py LIBRARIES REPORT...`.

LIBRARIES is the library directory of the package, each REPORT a file that
`pip install --report` wrote for one version of Python. The same package gives the same bytes.
"""

import argparse
import datetime as dt
import json
import os
import re
import sys
import uuid
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

OWN_NAME = "disksla-exporter"


def bill(directory: Path, reports: Iterable[Mapping[str, Any]], made_s: int) -> dict[str, Any]:
    """Return the document; `reports` are those of `pip install --report`.

    Raises ValueError if the libraries in the directory differ from those in the reports.
    """
    found = {_plain(library.name): library for library in distributions(path=[str(directory)])}
    wheels: dict[str, dict[str, str]] = {}
    for item in (item for report in reports for item in report["install"]):
        name = item["download_info"]["url"].rpartition("/")[2]
        sha256 = item["download_info"]["archive_info"]["hashes"]["sha256"]
        wheels.setdefault(_plain(item["metadata"]["name"]), {})[name] = sha256
    if found.keys() - wheels.keys() != {OWN_NAME}:
        raise ValueError(f"found other libraries in {directory} than in the reports of pip")
    libraries = [_library(found[name], wheels[name]) for name in sorted(wheels)]
    when = dt.datetime.fromtimestamp(made_s, dt.UTC)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(found[OWN_NAME], "application"),
        },
        "components": libraries,
        "dependencies": [
            {
                "ref": _ref(library),
                "dependsOn": [_ref(found[name]) for name in _needs(library, found)],
            }
            for _, library in sorted(found.items())
        ],
    }
    name = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{name}"}


def _library(library: Distribution, wheels: Mapping[str, str]) -> dict[str, Any]:
    """Return a library with the wheels that it was taken from, and their hashes."""
    return {
        **_component(library, "library"),
        "externalReferences": [
            {
                "type": "distribution",
                "url": name,
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }
            for name, sha256 in sorted(wheels.items())
        ],
    }


def _component(library: Distribution, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": _ref(library),
        "name": library.name,
        "version": library.version,
        "purl": _ref(library),
        "licenses": [_licence(library)],
    }


def _licence(library: Distribution) -> dict[str, Any]:
    """Return the licence as the author declared it: an SPDX expression, or else a name."""
    metadata = library.metadata.json
    if expression := metadata.get("license_expression"):
        return {"expression": expression}
    classified = [
        text.rpartition(" :: ")[2]
        for text in metadata["classifier"]
        if text.startswith("License ::")
    ]
    return {"license": {"name": metadata.get("license") or classified[0]}}


def _needs(library: Distribution, found: Mapping[str, Distribution]) -> list[str]:
    """Return its dependencies in the package; those of extras or other systems are not there."""
    needed = {
        _plain(match[0])
        for requirement in library.requires or []
        if "extra ==" not in requirement and (match := re.match(r"[\w.-]+", requirement))
    }
    return sorted(needed & found.keys())


def _ref(library: Distribution) -> str:
    return f"pkg:pypi/{_plain(library.name)}@{library.version}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("reports", type=Path, nargs="+")
    options = parser.parse_args()
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in options.reports]
    document = bill(options.libraries, reports, int(os.environ["SOURCE_DATE_EPOCH"]))
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
