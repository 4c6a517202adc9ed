"""Dashboard: uploads a report to a Stryker dashboard (https://stryker-mutator.io/docs/General/dashboard/).

    PUT {base}/api/reports/{project}/{version}?module={module}     X-Api-Key: {key}

The answer is `{"href": address of its page}`. A dashboard takes no report with Pending mutants.

The whole exchange has one bound, whatever the server does: it is in a thread of its own, which is left behind then,
since neither the lookup of a name nor a TLS handshake could be ended. A redirect is not followed: the key is for one
server.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from attrs import field, frozen

import msp_bridge
from msp_bridge.access.addresses import is_this_machine
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.model import Status
from msp_bridge.reports.standard import Report, reported_mutants
from msp_bridge.text import counted, one_line, shortened

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

log = logging.getLogger(__name__)

BASE = "https://dashboard.stryker-mutator.io"
KEY_VARIABLE, URL_VARIABLE = "STRYKER_DASHBOARD_API_KEY", "STRYKER_DASHBOARD_URL"
TOTAL_S = 180.0  # the dashboard itself takes up to 120 s to check a report
MAX_ANSWER = 64 * 1024  # bytes
MAX_SHOWN = 300  # characters of an answer
AGAIN = "after a `run`, `msp-bridge results --dashboard` sends the report again"
REMOTE = re.compile(r"(?:\w+://(?:[^/@]*@)?([^/:@]+)(?::\d*)?/|(?:[^/:@]+@)?([^/:@]+):/?(?!/))([^:]+?)(?:\.git)?/*")
CI_VERSIONS = (  # where StrykerJS finds it; the last is GitLab's
    *("CIRCLE_PR_NUMBER", "CIRCLE_BRANCH", "CIRCLE_TAG"),
    *("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH", "CI_COMMIT_REF_NAME"),
)


class UploadFailed(BridgeError):
    """The report is not on the dashboard."""


def _base(address: str) -> str:
    """The address of a dashboard, also from the setting of StrykerJS, which ends with the path of the API."""
    return address.rstrip("/").removesuffix("/api/reports")


@frozen
class Dashboard:
    """A place on a dashboard. Raises ConfigurationError for what can be none."""

    base: str = field(converter=_base)
    key: str = field(repr=False)
    project: str  # github.com/OWNER/NAME
    version: str  # such as a branch; with slashes, too
    module: str | None = None  # of a version with several reports

    def __attrs_post_init__(self) -> None:
        """Check everything before the tests run."""
        if not (self.key and self.key.isascii() and self.key.isprintable()):
            raise ConfigurationError(f"--dashboard needs the key of the project in {KEY_VARIABLE}")
        for name, value in (("project", self.project), ("version", self.version)):
            if not all(part.strip(".") for part in value.split("/")):
                raise ConfigurationError(f"--dashboard-{name}: {value!r} can't be part of an address")
        if not _is_address(self.base):
            raise ConfigurationError(f"{URL_VARIABLE} is no address of a dashboard", f"it is {BASE}, or your own")

    @property
    def url(self) -> str:
        """The address of the report in the API."""
        place, module = _quoted(f"{self.project}/{self.version}"), _quoted(self.module or "")
        return f"{self.base}/api/reports/{place}" + (f"?module={module}" if module else "")

    def upload(self, report: Report) -> str:
        """Upload `report`, and return the address of its page, for a terminal. Raises UploadFailed."""
        statuses = [fields["status"] for fields in reported_mutants(report)]
        if pending := statuses.count(Status.PENDING.value):
            were = "was" if pending == 1 else "were"
            raise UploadFailed(
                f"{counted(pending, 'mutant')} {were} not tested: a dashboard takes complete reports only"
            )
        body = json.dumps({name: value for name, value in report.items() if name != "projectRoot"}).encode()
        answer: Future[tuple[int, str, bytes]] = Future()
        threading.Thread(target=self._exchange, args=(body, answer), name="upload of a report", daemon=True).start()
        try:
            return self._page(*answer.result(TOTAL_S))
        except TimeoutError:
            raise UploadFailed(f"{self.base} has not answered within {TOTAL_S:g} s", AGAIN) from None

    def _exchange(self, body: bytes, answer: Future[tuple[int, str, bytes]]) -> None:
        """Give `answer` the status, where a redirect leads, and the body; or an error."""
        try:
            answer.set_result(self._put(body))
        except BaseException as error:  # a fault of ours, too: it is raised where the answer is waited for
            answer.set_exception(error)

    def _put(self, body: bytes) -> tuple[int, str, bytes]:
        from http.client import HTTPException  # here: a command without an upload does not wait for these modules
        from urllib.request import Request

        program = f"msp-bridge/{msp_bridge.__version__}"
        headers = {"Content-Type": "application/json", "User-Agent": program, "X-Api-Key": self.key}
        request = Request(self.url, body, headers, method="PUT")  # noqa: S310 - `_is_address` has looked at it
        try:
            with self._opener().open(request, timeout=None) as response:  # `upload` has the bound
                return response.status, response.headers.get("Location", ""), response.read(MAX_ANSWER + 1)
        except (OSError, HTTPException, ValueError) as error:  # the last for a proxy's address that is none
            reason = _shown(str(getattr(error, "reason", error))) or type(error).__name__
            raise UploadFailed(f"can't send the report to {self.base}: {reason}", AGAIN) from None

    def _opener(self) -> OpenerDirector:
        """Opens with the environment's proxy, unless the dashboard is on this machine, and follows no redirect."""
        from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, UnknownHandler

        local = is_this_machine(urlsplit(self.base).hostname or "")
        if not local and self.base.startswith("http:"):
            log.warning("the report and the key go to %s unencrypted", self.base)
        opener = OpenerDirector()
        for handler in (ProxyHandler({} if local else None), HTTPHandler(), HTTPSHandler(), UnknownHandler()):
            opener.add_handler(handler)
        return opener

    def _page(self, status: int, location: str, answer: bytes) -> str:
        said = _shown(answer.decode("utf-8", "replace"))
        if status == 401:
            remedy = f"set {KEY_VARIABLE} to the key that it shows for this project"
            raise UploadFailed(f"{self.base} does not accept the key for {self.project}", remedy)
        if 300 <= status < 400:
            remedy = f"set {URL_VARIABLE} to the address of the dashboard itself"
            raise UploadFailed(f"{self.base} redirects to {_shown(location)}", remedy)
        if not 200 <= status < 300:
            raise UploadFailed(f"{self.base} has answered with status {status}: {said}", AGAIN)
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError):
            value = answer
        if value is None:
            raise UploadFailed(f"{self.base} has no project {self.project}", "enable it there, or --dashboard-project")
        if not (isinstance(value, dict) and isinstance(value.get("href"), str)):
            raise UploadFailed(f"{self.base} does not answer as a dashboard: {said}", f"is {URL_VARIABLE} right?")
        return _shown(value["href"])


def project_of(remote: str) -> str | None:
    """The project of a git remote's address, as `github.com/OWNER/NAME`; None for one on this machine."""
    found = REMOTE.fullmatch(remote)
    return found and f"{found[1] or found[2]}/{found[3]}"


def ci_version(environment: Mapping[str, str]) -> str | None:
    """The version that StrykerJS takes in a job of a CI; None elsewhere."""
    kind, _, name = environment.get("GITHUB_REF", "").removeprefix("refs/").partition("/")
    if kind == "pull":
        return f"PR-{name.partition('/')[0]}"
    return name or next(filter(None, map(environment.get, CI_VERSIONS)), None)


def _is_address(base: str) -> bool:
    try:
        parts = urlsplit(base)
        if parts.port == 0 or parts.username is not None or parts.query or parts.fragment:
            return False
    except ValueError:
        return False
    if not (base.isascii() and base.isprintable()) or " " in base:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _quoted(name: str) -> str:
    """Quote what a path or a query may not have. A branch's name need not be UTF-8."""
    return quote(name, errors="surrogateescape")


def _shown(text: str) -> str:
    """Show what a server has said in one line of a terminal."""
    return one_line(shortened(text.strip(), MAX_SHOWN))
