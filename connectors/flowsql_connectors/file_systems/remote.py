"""Files that are not on this machine: their places in a file system of Arrow, and what is said of failed requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flowsql_connectors.file_systems.choice import open_file_system
from flowsql_connectors.file_systems.s3 import ENDPOINT
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.record import record

#: What the client of S3 says of a request that failed.
_OF_STORAGE: Final = "AWS Error"
_REFUSED: Final = (
    "ACCESS_DENIED",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_ACCESS_KEY_ID",
    "INVALID_CLIENT_TOKEN_ID",
    "UNRECOGNIZED_CLIENT",
    "EXPIRED_TOKEN",
    "HTTP status 403",
    "HTTP status 401",
)
_SILENT: Final = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT", "curlCode")


@record
class Place:
    """A file system and where a URI's host or bucket begins in it.

    Attributes:
        files: as ``pyarrow.fs`` has them.
        base: path of the host or bucket, without slashes around it.
        head: the URI up to there, ``s3://bucket``.
        slash: what paths of this file system begin with.
    """

    files: Any
    base: str
    head: str
    slash: str

    @property
    def scheme(self) -> str:
        """``s3``, ``memory``, ..."""
        return self.head.partition("://")[0]

    def path(self, uri: str) -> str:
        """The path in the file system."""
        key = uri[len(self.head) :].strip("/")
        return self.slash + "/".join(part for part in (self.base, key) if part)

    def uri(self, path: str) -> str:
        """The URI of a path."""
        return f"{self.head}/{path.strip('/')[len(self.base) :].strip('/')}"


@record
class RemoteFile:
    """One file of a :class:`Place`; ``uri`` names it in messages."""

    files: Any
    path: str
    uri: str

    def random_access(self) -> Any:
        """An Arrow file that reads parts by their positions.

        Raises:
            ConnectorError: it is not there, or cannot be reached.
        """
        try:
            return self.files.open_input_file(self.path)
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(self.uri, error) from error

    def stream(self) -> Any:
        """An Arrow file that is read from its beginning to its end; raises as :meth:`random_access`."""
        try:
            return self.files.open_input_stream(self.path)
        except Exception as error:  # see random_access
            raise storage_error(self.uri, error) from error


def place_of(uri: str, settings: Mapping[str, str]) -> Place:
    """Where a table's path is.

    Args:
        uri: with a scheme; globs may stand behind the host or bucket.
        settings: of the job or session.

    Raises:
        BindError: a path with a password in it.
        ConnectorError: nothing opens it.
    """
    scheme, _, rest = uri.partition("://")
    host = rest.partition("/")[0]
    if ":" in host.rpartition("@")[0]:
        raise BindError(
            "secret-in-path",
            f"The path '{scheme}://***@{host.rpartition('@')[2]}' holds a password, which messages would show.",
            hint="'s3.access-key' and 's3.secret-key' of the session, or the environment, are the place for it",
        )
    if not host and scheme.startswith("s3"):
        raise ConnectorError("invalid-path", f"Path '{uri}' names no bucket.")
    head = f"{scheme}://{host}"
    files, base = open_file_system(head, settings)
    return Place(files, base.strip("/"), head, "/" if base.startswith("/") else "")


def storage_error(uri: str, error: Exception) -> ConnectorError:
    """One sentence about a request for a URI that failed."""
    text = str(error)
    if isinstance(error, FileNotFoundError):
        made = ConnectorError("file-not-found", f"File {uri} does not exist.")
    elif "NO_SUCH_BUCKET" in text:
        made = no_such_bucket(uri)
    elif any(word in text for word in _REFUSED):
        made = ConnectorError(
            "storage-refused",
            f"Access to '{uri}' is refused.",
            hint="'s3.access-key' and 's3.secret-key', or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, say who asks",
        )
    elif any(word in text for word in _SILENT):
        reason = text.rpartition("curlCode: ")[2].partition("Details: ")[2] or "no connection"
        made = ConnectorError(
            "storage-unreachable",
            f"The storage of '{uri}' does not answer: {reason}.",
            retryable=True,
            hint=f"'{ENDPOINT.key}' or AWS_ENDPOINT_URL say where it is",
        )
    else:
        made = ConnectorError("storage-failed", f"'{uri}': {text.rstrip('.')}.", retryable=True)
    made.__cause__ = error
    return made


def no_such_bucket(uri: str) -> ConnectorError:
    """The error for a path whose bucket is not there."""
    bucket = uri.split("://", 1)[-1].partition("/")[0]
    return ConnectorError("no-such-bucket", f"There is no bucket '{bucket}' (path '{uri}').")


def is_of_storage(error: BaseException) -> bool:
    """Whether the storage failed, and not what reads the bytes."""
    return isinstance(error, OSError) and _OF_STORAGE in str(error)
