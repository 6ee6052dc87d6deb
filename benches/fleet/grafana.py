"""Grafana on loopback with the dashboards of the mixin, if it is installed."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.stack import MIXIN
from support.monitoring_stack import free_port

_HOMES = (Path("/usr/share/grafana"), Path("/opt/grafana"))


def write_provisioning(home: Path, prometheus: str) -> Path:
    """Write the provisioning of Grafana: the data source, and the dashboards."""
    provisioning = home / "provisioning"
    documents: dict[str, dict[str, object]] = {
        "datasources": {
            "datasources": [
                {
                    "name": "disksla",
                    "type": "prometheus",
                    "access": "proxy",
                    "url": f"http://{prometheus}",
                    "isDefault": True,
                    "jsonData": {"timeInterval": "60s"},
                }
            ]
        },
        "dashboards": {
            "providers": [
                {
                    "name": "disksla",
                    "folder": "disksla",
                    "type": "file",
                    "options": {"path": str(MIXIN / "dashboards")},
                }
            ]
        },
        "plugins": {"apps": []},
        "alerting": {},
    }
    for name, document in documents.items():
        file = provisioning / name / "disksla.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"apiVersion": 1, **document}, indent=1))  # JSON is YAML
    return provisioning


@contextmanager
def grafana(home: Path, provisioning: Path) -> Iterator[str | None]:
    """Run Grafana without login, and yield its address; None if it is not installed."""
    program = shutil.which("grafana-server")
    share = next(filter(Path.is_dir, _HOMES), None)
    if program is None or share is None:
        yield None
        return
    port = free_port()
    settings = {
        "server.http_addr": "127.0.0.1",
        "server.http_port": port,
        "paths.data": home / "grafana",
        "paths.logs": home / "grafana",
        "paths.provisioning": provisioning,
        "auth.anonymous.enabled": "true",
        "auth.anonymous.org_role": "Admin",
        "analytics.reporting_enabled": "false",
        "analytics.check_for_updates": "false",
    }
    overrides = [f"cfg:default.{name}={value}" for name, value in settings.items()]
    command = [program, f"--homepath={share}", *overrides]
    with (home / "grafana.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
