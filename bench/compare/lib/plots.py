"""Pictures of what was measured: of each operation and place the best configuration of each system, and the limit, as curves."""
import json
import re
import subprocess

from analysis import best_of, is_measured, limit_of, place_of
from systems import NAMES

# Colours by number (src/chart).
COLOURS = {"tutti": 0, "tutti, registered": 5, "openmpi": 1, "mpich": 3, "gloo": 2, "ucc": 4, "limit": 6}


def bus_factor(operation, ranks):
    """What of the message crosses the bus, as nccl-tests counts."""
    return {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1}.get(operation, (ranks - 1) / ranks)


def curve(name, colour, dashed, points, factor):
    known = [(count, time) for count, time in points if time]
    return {"name": name, "colour": colour, "dashed": dashed,
            "points": [[count, factor * count / time / 1000, time] for count, time in sorted(known)]}


def system_curves(rows, factor):
    """Of rows of one place and operation: whole lines out of place, dashed ones in place."""
    curves = []
    for name, colour in COLOURS.items():
        system, _, memory = name.partition(", ")
        for in_place in (False, True):
            own = best_of(row for row in rows if (row["system"], row["in_place"]) == (system, in_place) and
                          row["memory"] == (memory or "ordinary"))
            points = [(count, row["median_us"]) for (_, _, count), row in own.items()]
            if points:
                shown = NAMES[system] + (f", {memory}" if memory else "") + (", in place" if in_place else "")
                curves.append(curve(shown, colour, in_place, points, factor))
    return curves


def pictures(rows):
    """(name of the file, what compare_plot draws) of each operation and place."""
    measured = [row for row in rows if is_measured(row)]
    for place in sorted({place_of(row) for row in measured}, key=lambda one: one.order):
        for operation in sorted({row["op"] for row in measured}):
            here = [row for row in measured if place_of(row) == place and row["op"] == operation]
            if not here:
                continue
            factor = bus_factor(operation, place.ranks)
            curves = system_curves(here, factor)
            limit = [(count, limit_of(rows, place, operation, count)) for count in sorted({row["bytes"] for row in here})]
            if any(time for _, time in limit):
                curves.append(curve("limit of the machine", COLOURS["limit"], False, limit, factor))
            name = re.sub(r"\W+", "-", f"{operation} {place.transport} {place.ranks} {place.type}{' busy' * place.busy}")
            yield f"{name}.svg", {"title": f"{operation}: {place}", "curves": curves}


def draw(rows, program, folder):
    """The files that were written. `program` is compare_plot."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in pictures(rows):
        done = subprocess.run([program], input=json.dumps(picture), capture_output=True, text=True, check=True, timeout=60)
        (folder / name).write_text(done.stdout, encoding="utf-8")
        written.append(folder / name)
    return written
