"""A server of the loopback under names that are others' on the internet."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

from tests.support.certificates import certificate_for, java_trust
from tests.support.faulty_proxy import Faults, proxy


@contextlib.contextmanager
def seen_as(url: str, directory: Path, *hosts: str) -> Iterator[tuple[str, dict[str, str], Faults]]:
    """The server under these names, by https, for a JVM with these options and a process with this environment."""
    certificate, key = certificate_for(directory, *hosts)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(certificate, key)
    with proxy(url, shown) as (place, faults):
        host, _, port = place.partition("//")[2].partition(":")
        java = f"-Dhttps.proxyHost={host} -Dhttps.proxyPort={port} {java_trust(certificate)}"
        environment = {"HTTPS_PROXY": place, "NO_PROXY": "127.0.0.1"}
        environment |= {name.lower(): value for name, value in environment.items()}
        trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(certificate))
        yield java, {**environment, **trust}, faults
