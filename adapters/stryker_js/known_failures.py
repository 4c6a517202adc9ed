"""KnownFailures: a first run of the tests that failed is not run again at each request while nothing has changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from attrs import define, field

from msp_bridge.adapter import BaselineError

HOLDS_S = 300.0  # what the tests need besides the project may be there by then: a database, a free port


@define
class KnownFailures:
    """The last one. A key is equal as long as all that the first run depends on in the project is."""

    _key: object = None
    _error: BaselineError | None = None
    _at: float = field(factory=time.monotonic)

    def of(self, key: object) -> BaselineError | None:
        """How the first run for `key` has failed in the last minutes, if it has."""
        error = self._error
        if error is None or key != self._key or time.monotonic() - self._at > HOLDS_S:
            return None
        return BaselineError(error.problem, error.remedy, error.failing, error.first_failure)

    @contextlib.contextmanager
    def noted(self, key: object) -> Iterator[None]:
        """Meanwhile a first run for `key` is noted if it fails."""
        try:
            yield
        except BaselineError as error:
            self._key, self._error, self._at = key, error, time.monotonic()
            raise
