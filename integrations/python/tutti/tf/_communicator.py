"""Which communicator a call means."""
from __future__ import annotations

import tutti
from tutti import Communicator


def communicator(comm: Communicator | None) -> Communicator:
    """The one given, or that of tutti.init(). Raises tutti.InvalidUsage where there is neither."""
    return comm if comm is not None else tutti._default_communicator()
