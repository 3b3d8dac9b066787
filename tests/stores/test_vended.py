"""Tables whose files are opened by credentials that the catalog hands out for some time: a SAS, a token of Google."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import certificate_for
from tests.support.limits import ONLY_A_HANG_S
from tests.support.store_processes import AZURE, GOOGLE, azure_server

# the stores of which there is a server
KINDS = [kind for kind, variable in (("azure", AZURE), ("google", GOOGLE)) if variable in os.environ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_only_its_catalog_opens(kind: str, tmp_path: Path) -> None:
    if kind == "google":
        run("google", os.environ[GOOGLE])
        return
    # adlfs sends a SAS by https alone, so that this server shows a certificate, which the process trusts
    certificate, key = certificate_for(tmp_path, "127.0.0.1")
    with azure_server(certificate, key) as url:
        run("azure", url, SSL_CERT_FILE=str(certificate))


def run(kind: str, url: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.vended_table", kind, url],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
