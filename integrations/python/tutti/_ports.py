"""TCP ports that are agreed upon before anybody listens there."""
from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
BESIDE = 1789  # so far above a MASTER_PORT is the port that the library makes of it (docs/launchers.md)
_FIRST, _ENOUGH, _ATTEMPTS = 10240, 1000, 100


def _below_the_systems() -> int:
    """A port below those that the system gives to whoever asks for none, as every outgoing connection does, and so is the one
    BESIDE above it; 0 where those leave next to none: the system gives one then."""
    try:
        first = int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    behind = first - BESIDE
    return random.SystemRandom().randrange(_FIRST, behind) if behind >= _FIRST + _ENOUGH else 0


def free_port() -> int:
    """One that nobody listens at on any address of this host. Nobody holds it until its user comes, but no outgoing connection
    takes it meanwhile where the system leaves enough ports to those who ask. Raises OSError where none is free."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    for port in (*(_below_the_systems() for _ in range(_ATTEMPTS)), 0):
        with contextlib.suppress(OSError), socket.socket(family) as listener:
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("", port))
            return int(listener.getsockname()[1])
    raise OSError("no free TCP port")
