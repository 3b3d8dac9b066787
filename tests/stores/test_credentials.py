"""Credentials that nobody gives: the environment, profiles and files that a store's own tools go by, through Spark.

The servers look at them: s3proxy and Azurite at signatures. fake-gcs-server takes any token; there it is seen that one
was asked for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.limits import ONLY_A_HANG_S
from tests.support.store_processes import azure_server, google_server, s3_proxy_server, what_can_be_had
from tests.support.stores import ACCOUNT, ACCOUNT_KEY, Store, azure_store, google_store, s3_store
from tests.support.under_names import seen_as

ROOT = Path(__file__).parents[2]
KEYS = {"key": "an-access-key", "secret": "a secret of s3proxy"}
# of the machine's own that these tests run on
OF_STORES = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_", "FSSPEC_")


def environment_of(directory: Path, given: Mapping[str, str]) -> dict[str, str]:
    """None of the machine's own credentials, and no other files of the same tools than those in the directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_STORES)}
    return {**kept, "HOME": str(directory), **given}


def lives(store: Store, directory: Path, *options: Mapping[str, Any], **environment: str) -> None:
    """Two tables for each of the options, which are used in a session of Spark."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.credentials_process", str(directory)],
        input=json.dumps([{"table": store.root(), "copy": store.root(), "options": given} for given in options]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        env=environment_of(directory, environment),
    )
    assert done.returncode == 0 and "all is well" in done.stdout, done.stderr[-4000:]


def test_profiles_of_s3(tmp_path: Path) -> None:
    """The one that the environment names, and one that an option does; that of nobody's choice has a wrong secret."""
    with what_can_be_had(), s3_proxy_server(KEYS["key"], KEYS["secret"]) as url:
        profiles = {"default": "of nobody", "env": KEYS["secret"], "option": KEYS["secret"]}
        credentials, config = "", ""
        for name, secret in profiles.items():
            keys = f"aws_access_key_id = {KEYS['key']}\naws_secret_access_key = {secret}\n"
            credentials += f"[{name}]\n{keys}"
            section = name if name == "default" else f"profile {name}"
            config += f"[{section}]\nregion = us-east-1\nendpoint_url = {url}\n"
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws" / "credentials").write_text(credentials)
        (tmp_path / ".aws" / "config").write_text(config)
        store = s3_store(url, bucket="profiles", **KEYS)
        lives(store, tmp_path, {}, {"profile": "option"}, AWS_PROFILE="env")
        root = store.root()
        program = (
            f"from delta_pyds.storage.resolve import resolve_storage\nresolve_storage({root!r}).put({root!r}, b'x')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, env=environment_of(tmp_path, {})
        )
        # so the server looks at them
        assert "signature" in done.stderr and "of nobody" not in done.stderr, done.stderr


def test_azure_by_the_key_of_the_account_in_the_environment(tmp_path: Path) -> None:
    """The account is that of the path, at its own name."""
    with (
        what_can_be_had(),
        azure_server() as url,
        seen_as(url, tmp_path, f"{ACCOUNT}.blob.core.windows.net") as (_, environment, faults),
    ):
        lives(azure_store(url), tmp_path, {}, AZURE_STORAGE_ACCOUNT_KEY=ACCOUNT_KEY, **environment)
        assert any(method == "CONNECT" for method, _ in faults.asked)


def test_google_by_application_default_credentials(tmp_path: Path) -> None:
    user = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
    (tmp_path / "user.json").write_text(json.dumps(user))
    with (
        what_can_be_had(),
        google_server() as url,
        seen_as(url, tmp_path, "oauth2.googleapis.com") as (_, environment, faults),
    ):
        faults.give_token()
        file = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "user.json"), "GOOGLE_CLOUD_PROJECT": "test"}
        lives(google_store(url), tmp_path, {"endpoint_url": url}, **file, **environment)
        assert ("POST", "/token") in faults.asked
