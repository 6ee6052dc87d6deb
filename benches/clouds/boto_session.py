"""Calls to a server of moto by boto3, one per line; runs with the Python of moto's environment.

A line is a JSON list: service, operation, parameters, and keys (access key, secret) or null.
"""

import json
import sys
from typing import Any

import boto3  # type: ignore[import-not-found,unused-ignore]


def main(endpoint: str, region: str) -> None:
    for line in sys.stdin:
        service, operation, parameters, keys = json.loads(line)
        access_key, secret = keys or ("setup", "setup")
        client: Any = boto3.client(
            service,
            region_name=region,
            endpoint_url=endpoint,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret,
        )
        answer = getattr(client, operation)(**parameters)
        sys.stdout.write(json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
