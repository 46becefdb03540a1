"""Limit how many requests each token may make a minute. Each server process counts for itself."""

import time
from dataclasses import dataclass, field

from registry.access import Access

MINUTE_S = 60.0


@dataclass
class Quotas:
    """The requests that each token has left, as a bucket that holds a minute's worth and fills at an even pace.

    `per_minute`: for tokens without a limit of their own; 0: no limit.
    """

    per_minute: int
    _full_at: dict[str, float] = field(default_factory=dict)  # when a token's bucket is full again, by the token's name

    def limit_of(self, access: Access) -> int:
        return self.per_minute if access.per_minute is None else access.per_minute

    def take(self, access: Access) -> float:
        """Count a request, and return 0; if none is left, return the seconds until there is one."""
        limit, now = self.limit_of(access), time.monotonic()
        if not limit:
            return 0.0
        full_at = max(self._full_at.get(access.name, now), now) + MINUTE_S / limit
        wait_s = full_at - now - MINUTE_S
        if wait_s > 0.001:  # less is rounding
            return wait_s
        self._full_at[access.name] = full_at
        return 0.0
