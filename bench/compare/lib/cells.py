"""What is measured: cells, each an operation of so many bytes of a type, out of place or in place."""
import re
from typing import NamedTuple

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
TYPES = ("float", "double", "int32", "half", "bfloat16")
TRANSPORTS = ("shm", "tcp", "namespaces")  # the last one: TCP, each rank in a network namespace of its own
ON_ONE_HOST = TRANSPORTS[:2]
SIZES = "8,64,1K,8K,64K,256K,1M,4M,16M,64M"
QUICK_SIZES = "8,1K,64K,1M,8M"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cell(NamedTuple):
    op: str
    type: str
    bytes: int
    in_place: bool

    def line(self, slow=0.0):
        """As drivers read it (cell.h)."""
        return f"{self.op} {self.type} {self.bytes} {'in' if self.in_place else 'out'} {slow:.3f}"


def cells_of(operations, types, sizes, places):
    return [Cell(op, kind, size, place == "in") for kind in types for op in operations for size in sizes for place in places]


def size_of(text):
    found = re.fullmatch(r"(\d+)([KMG]?)(?:I?B)?", text.strip().upper())
    if not found or int(found[1]) == 0:
        raise ValueError(f"'{text}' is no size: 8, 64K and 16M are")
    return int(found[1]) * UNITS[found[2]]


def size_text(count):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"
