"""S3 and what speaks like it: endpoint, region and credentials as Flink's options and AWS's environment name them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from flowsql_core.config import ConfigOption, option, parse_bool, parse_text

#: Flink's names of the scheme.
S3_SCHEMES: Final = ("s3", "s3a", "s3n")
#: Seconds until a connection stands, and without a byte of an answer; a request is tried three times.
_CONNECT_S: Final = 3.0
_SILENT_S: Final = 10.0
_ATTEMPTS: Final = 3
#: Where an endpoint of one's own is given, the region is a part of the signature only.
_REGION: Final = "us-east-1"

ACCESS_KEY = option(
    "s3.access-key", parse_text, "", "Key of S3; without it the environment and files of AWS tell. Never printed."
)
SECRET_KEY = option("s3.secret-key", parse_text, "", "Secret of 's3.access-key'. Never printed.")
ENDPOINT = option("s3.endpoint", parse_text, "", "URL of what speaks S3, e.g. http://localhost:9000; empty: AWS.")
PATH_STYLE = option(
    "s3.path.style.access",
    parse_bool,
    False,
    "Name the bucket in the path and not in the host, also where no 's3.endpoint' is given (with one it always is).",
)
REGION = option("s3.region", parse_text, "", "Region of the bucket; empty: the environment's, else asked of AWS.")
S3_OPTIONS: Final[tuple[ConfigOption[Any], ...]] = (ACCESS_KEY, SECRET_KEY, ENDPOINT, PATH_STYLE, REGION)


def open_s3(bucket: str, settings: Mapping[str, str]) -> Any:
    """Arrow's file system of S3.

    Args:
        bucket: whose region is asked for, if nothing tells it.
        settings: texts of ``S3_OPTIONS`` by their keys; other keys are passed over.

    Raises:
        OSError: the region cannot be found out.
        ValueError: one half of a key.
    """
    from pyarrow import fs

    access_key, secret_key = settings.get(ACCESS_KEY.key), settings.get(SECRET_KEY.key)
    if bool(access_key) != bool(secret_key):
        raise ValueError(f"give '{ACCESS_KEY.key}' and '{SECRET_KEY.key}', or neither")
    environment = os.environ
    endpoint = (
        settings.get(ENDPOINT.key) or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    )
    region = settings.get(REGION.key) or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        region = _REGION if endpoint else fs.resolve_s3_region(bucket)
    if not endpoint and PATH_STYLE.read(settings.get(PATH_STYLE.key, "false")):
        # Arrow names buckets in the path wherever an endpoint is given.
        endpoint = f"https://s3.{region}.amazonaws.com"
    return fs.S3FileSystem(
        access_key=access_key or None,
        secret_key=secret_key or None,
        endpoint_override=endpoint,
        region=region,
        connect_timeout=_CONNECT_S,
        request_timeout=_SILENT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        allow_delayed_open=True,
    )
