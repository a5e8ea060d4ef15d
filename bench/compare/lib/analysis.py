"""What was measured, as tables: tutti beside the best peer of each cell. Nothing here measures, so that it reads old files as well."""
import json
import math
import statistics
from typing import NamedTuple

from cells import OPERATIONS, TRANSPORTS, TYPES, size_text
from systems import NAMES

TITLES = {"shm": "Shared memory", "tcp": "TCP over loopback", "namespaces": "TCP between namespaces"}
AIM = 1.2  # cells below are listed
QUIET = 0.15  # of the machine, that others may take
LONGEST = 1e12  # us that something may have taken
LEAST_BESIDE_MAP = 64 << 10  # bytes, from which on what is registered is held against the direct map
ALIKE = 1.5  # times as long as in another minute a word may take to another processor, for both to be of one kind
WANTED = {"system": str, "config": str, "op": str, "transport": str, "ranks": int, "bytes": int, "in_place": bool, "memory": str,
          "median_us": (int, float)}
MAY_HAVE = {"type": str, "busy": bool, "others": (int, float), "version": str}
MOST_BYTES = 1 << 50  # that a result can be of


class BadFile(Exception):
    pass


def order_among(known, name):
    """Those of a newer file come last."""
    return (known.index(name) if name in known else len(known), name)


class Place(NamedTuple):
    """One table: where cells are that may be compared."""
    transport: str
    ranks: int
    type: str
    busy: bool

    def __str__(self):
        name = TITLES.get(self.transport, self.transport)
        kind = "" if self.type == "float" else f", {self.type}"
        return f"{name}, {self.ranks} ranks{kind}{', busy processors' if self.busy else ''}"

    @property
    def order(self):
        return order_among(TYPES, self.type), self.busy, order_among(TRANSPORTS, self.transport), self.ranks


class Line(NamedTuple):
    """A line of a table."""
    op: str
    in_place: bool
    memory: str

    def __str__(self):
        return self.op + (", in place" if self.in_place else "") + (f", {self.memory}" if self.memory != "ordinary" else "")

    @property
    def order(self):
        return self.memory != "ordinary", self.in_place, order_among(OPERATIONS, self.op)


class Pair(NamedTuple):
    """A cell: the medians of tutti's time and of the best peer's, where there is one; how many times tutti's time the peer's was
    (ratios_between); and whether that is of unlike minutes."""
    ours: float
    best: float = 0
    who: str = ""
    ratio: float = None
    apart: bool = False


def check(row, number, path):
    if not isinstance(row, dict) or "system" not in row:
        raise BadFile(f"{path}: row {number} is no result of bench/compare/run")
    where = f"{path}: row {number}"
    for name, kind in kinds_of(row).items():
        check_value(row.get(name), kind, f"{where}: {name}")
    if row["system"] == "machine":
        return
    if not (0 < row["median_us"] < LONGEST and 0 < row["ranks"] < MOST_BYTES and 0 < row["bytes"] < MOST_BYTES):
        raise BadFile(f"{where} has a time, ranks or bytes that cannot be")
    for name in ("rounds_us", "lines_us"):
        check_turns(row.get(name, []), f"{where}: {name}")


def kinds_of(row):
    """{name: kind} of what a row must have, and of what it has besides."""
    if row["system"] == "machine":
        return {"config": str}
    return {**WANTED, **{name: kind for name, kind in MAY_HAVE.items() if name in row}}


def check_value(value, kind, what):
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise BadFile(f"{what} is {json.dumps(value)}")
    if isinstance(value, str) and not value.isprintable():
        raise BadFile(f"{what} is {json.dumps(value)}, which cannot be printed")


def check_turns(turns, what):
    """A time for each round, or none for those in which there was no turn."""
    if not isinstance(turns, list):
        raise BadFile(f"{what} is {json.dumps(turns)}")
    for time in (turn for turn in turns if turn is not None):
        if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 < time < LONGEST:
            raise BadFile(f"{what} has {json.dumps(time)}")


def read(path):
    """The rows of a file; raises BadFile."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadFile(f"{path} is no JSON: {error or 'too much of it'}") from error
    if not isinstance(rows, list):
        raise BadFile(f"{path} is no list of results")
    for number, row in enumerate(rows):
        check(row, number, path)
    return rows


def place_of(row):
    return Place(row["transport"], row["ranks"], row.get("type", "float"), row.get("busy", False))


def is_measured(row):
    return row["system"] in NAMES


def mean(ratios):
    """The geometric one."""
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def best_of(rows):
    """{(place, line, bytes): the quickest row}. Of peers, whose memory is ordinary, lines of every memory."""
    best = {}
    for row in rows:
        key = place_of(row), Line(row["op"], row["in_place"], row["memory"]), row["bytes"]
        if key not in best or row["median_us"] < best[key]["median_us"]:
            best[key] = row
    return best


def turns_of(row):
    """[(us or None, us of a word to the other processor and back or None)] of each round; none of a file that tells of no rounds."""
    times, lines = row.get("rounds_us", []), row.get("lines_us", [])
    return list(zip(times, lines or [None] * len(times)))


def ratios_between(ours, peer):
    """How many times tutti's time a peer's was: of each two rounds in minutes of one kind, whichever they are, where both have rounds
    whose minutes are known; of each round otherwise. And whether such minutes are known, and none was like one of the other's."""
    mine, theirs = turns_of(ours), turns_of(peer)
    told, others = ([turn for turn in turns if all(turn)] for turns in (mine, theirs))
    same = [time / own for own, own_line in told for time, line in others if max(line, own_line) <= ALIKE * min(line, own_line)]
    if same:
        return same, False
    both = [time / own for (own, _), (time, _) in zip(mine, theirs) if own and time] if len(mine) == len(theirs) else []
    return both or [peer["median_us"] / ours["median_us"]], bool(told and others)


def pair_of(ours, peer):
    """What a machine is like changes by the minute, so that medians of all rounds would compare minutes."""
    ratios, apart = ratios_between(ours, peer)
    return Pair(ours["median_us"], peer["median_us"], f"{NAMES[peer['system']]} {peer['config']}", statistics.median(ratios), apart)


def pairs_of(rows):
    """{place: {line: {bytes: Pair}}} of the cells that tutti has, each with the peer that is best beside it."""
    peers, tables = {}, {}
    for row in rows:
        if is_measured(row) and row["system"] != "tutti":
            peers.setdefault((place_of(row), Line(row["op"], row["in_place"], "ordinary"), row["bytes"]), []).append(row)
    for (place, line, count), ours in best_of(row for row in rows if row["system"] == "tutti").items():
        pairs = [pair_of(ours, peer) for peer in peers.get((place, line._replace(memory="ordinary"), count), [])]
        pair = min(pairs, key=lambda one: (one.apart, one.ratio), default=Pair(ours["median_us"]))
        tables.setdefault(place, {}).setdefault(line, {})[count] = pair
    return tables


def ratios_of(table, memory):
    return [pair.ratio for line, cells in table.items() if line.memory == memory for pair in cells.values() if pair.who]


# --- limits ---

def wire_limit(rows, operation, place, count):
    """The time that the bytes of a collective take over the device at the best rate that was seen, and not less than the shortest
    exchange, or of a broadcast, whose root may run ahead, the shortest send; None where that was not measured."""
    moves = {"exchange": [], "stream": []}
    for row in rows:
        if (row["system"], row["config"], row.get("transport")) == ("limit", "socket", place.transport) and row["op"] in moves:
            moves[row["op"]].append((row["median_us"], row["bytes"] * (2 if row["op"] == "exchange" else 1)))
    shortest = min(moves["stream" if operation == "broadcast" else "exchange"], default=None)
    if not shortest:
        return None
    rate = max(moved / time for times in moves.values() for time, moved in times)
    wire = count * (place.ranks - 1) * (2 if operation == "all_reduce" else 1)
    return max(wire / rate, shortest[0])


def limit_of(rows, place, operation, count):
    """The microseconds below which the machine cannot go; None where that was not measured, or is not known of that type."""
    if place.transport in ("tcp", "namespaces"):
        return wire_limit(rows, operation, place, count)
    if place.type != "float":
        return None
    wanted = ("limit", "direct map", operation, place.ranks, count)
    return next((row["median_us"] for row in rows if row["system"] == "limit" and
                 (row["system"], row["config"], row["op"], row["ranks"], row["bytes"]) == wanted), None)


def beside_the_map(rows, place):
    """{operation: {bytes: how many times the direct map's time tutti takes with registered memory, as words}}, out of place."""
    ours = {(line.op, count): row for (own, line, count), row in best_of(row for row in rows if row["system"] == "tutti").items()
            if own == place and (line.memory, line.in_place) == ("registered", False) and count >= LEAST_BESIDE_MAP}
    table = {}
    for row in rows:
        if row["system"] != "limit" or (row["config"], row["ranks"]) != ("direct map", place.ranks):
            continue
        if (row["op"], row["bytes"]) in ours:
            ratios, apart = ratios_between(row, ours[row["op"], row["bytes"]])
            table.setdefault(row["op"], {})[row["bytes"]] = f"{statistics.median(ratios):.2f}{'†' * apart}"
    return table


# --- words ---

def time_text(microseconds):
    return f"{microseconds:.2f}" if microseconds < 10 else f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:.0f}"


def markdown_table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(line) + " |" for line in lines]


def mark(pair):
    return "†" if pair.apart else ""


def pair_text(pair):
    if pair is None:
        return "–"
    peer = f" ({time_text(pair.best)} {pair.who}) **{pair.ratio:.2f}**{mark(pair)}" if pair.who else ""
    return time_text(pair.ours) + peer


def place_table(place, table, rows):
    """A line for each operation, in place and out of place, and at the foot the limits of the machine."""
    sizes = sorted({count for cells in table.values() for count in cells})
    lines = [[str(line), *(pair_text(table[line].get(count)) for count in sizes)]
             for line in sorted(table, key=lambda one: one.order)]
    for operation in sorted({line.op for line in table}, key=lambda name: order_among(OPERATIONS, name)):
        limits = [limit_of(rows, place, operation, count) for count in sizes]
        if any(limits):
            lines.append([f"{operation}, limit", *(time_text(limit) if limit else "–" for limit in limits)])
    return markdown_table(["", *map(size_text, sizes)], lines)


def map_table(rows, place):
    table = beside_the_map(rows, place) if place.transport == "shm" and place.type == "float" and not place.busy else {}
    sizes = sorted({count for cells in table.values() for count in cells})
    if not sizes:
        return []
    lines = [[operation, *(table[operation].get(count, "–") for count in sizes)]
             for operation in sorted(table, key=lambda name: order_among(OPERATIONS, name))]
    return ["Registered memory in units of the direct map, out of place:", "", *markdown_table(["", *map(size_text, sizes)], lines), ""]


def summary(tables):
    """A line for each place and memory: the mean, and how many cells are below the aim."""
    lines = []
    for place in sorted(tables, key=lambda one: one.order):
        for memory in ("ordinary", "registered"):
            ratios = ratios_of(tables[place], memory)
            if ratios:
                lines.append([str(place), memory, f"{mean(ratios):.2f}", f"{min(ratios):.2f}",
                              f"{sum(ratio < AIM for ratio in ratios)} of {len(ratios)}"])
    return markdown_table(["", "memory", "geometric mean", "least", f"below {AIM}"], lines)


def disturbance(rows):
    """Whether the machine was quiet."""
    shares = [row["others"] for row in rows if is_measured(row) and "others" in row]
    disturbed = sum(share > QUIET for share in shares)
    if not disturbed:
        return []
    return [f"**The machine was not quiet**: {disturbed} of {len(shares)} results were measured while other processes took more "
            f"than {QUIET:.0%} of it.", ""]


def minutes(rows, tables):
    """How much the machine varied, where that was measured."""
    lines = sorted(line for row in rows if is_measured(row) for line in row.get("lines_us", []) if line)
    if not lines:
        return []
    apart = sum(pair.apart for table in tables.values() for cells in table.values() for pair in cells.values())
    return [f"Meanwhile a word to another processor and back took {lines[0]:.2f} to "
            f"{lines[-1]:.2f} us, a tenth of the time up to {lines[len(lines) // 10]:.2f} and a tenth at least "
            f"{lines[len(lines) * 9 // 10]:.2f}" + (f"; †: {apart} cells that had only minutes that differ" if apart else "") + ".", ""]


def below_aim(tables):
    below = sorted((pair.ratio, place, line, count, pair) for place, table in tables.items() for line, cells in table.items()
                   for count, pair in cells.items() if pair.who and pair.ratio < AIM)
    return [f"- {ratio:.2f}{mark(pair)}: {place}: {line}, {size_text(count)}: {time_text(pair.ours)} us, {pair.who} "
            f"{time_text(pair.best)} us" for ratio, place, line, count, pair in below]


def limit_lines(rows):
    """The machine's limits other than collectives."""
    lines = []
    for row in rows:
        if row["system"] != "limit" or row["config"] == "direct map":
            continue
        name = row["config"] if row["config"] == row["op"] else f"{row['config']}, {row['op']}"
        name += " between namespaces" if row["transport"] == "namespaces" else ""
        lines.append(f"- {name}, {row['ranks']} thread{'s' if row['ranks'] > 1 else ''}, {size_text(row['bytes'])}: "
                     f"{time_text(row['median_us'])} us, {row['bytes'] / row['median_us'] / 1000:.2f} GB/s")
    return lines


def report(rows):
    """The whole, in Markdown."""
    tables = pairs_of(rows)
    machines = [row["config"] for row in rows if row["system"] == "machine"]
    versions = sorted({row["version"] for row in rows if is_measured(row) and "version" in row})
    text = ["# tutti beside its peers", "", ". ".join([*machines, ", ".join(versions)]) + ".", "",
            "A cell: tutti's microseconds (those of the best peer, and which) **ratio**; above 1 tutti is ahead. Times are medians of all "
            "rounds, ratios of rounds in like minutes, where these are known, and of each round by itself where not.", ""]
    text += [*disturbance(rows), *minutes(rows, tables), *summary(tables), ""]
    for place in sorted(tables, key=lambda one: one.order):
        text += [f"## {place}", "", *place_table(place, tables[place], rows), "", *map_table(rows, place)]
    below = below_aim(tables)
    if below:
        text += [f"## Below {AIM}", "", *below, ""]
    limits = limit_lines(rows)
    if limits:
        text += ["## The machine's limits", "", *limits, ""]
    return "\n".join(text)


# --- two files ---

class Change(NamedTuple):
    place: Place
    line: Line
    bytes: int
    before: float
    after: float

    @property
    def ratio(self):
        return self.before / self.after


def changes_of(before, after, system):
    """What both files have of a system, its best configuration each."""
    first, second = (best_of(row for row in rows if row["system"] == system) for rows in (before, after))
    return [Change(*key, first[key]["median_us"], second[key]["median_us"]) for key in first if key in second]


def change_report(changes, listed):
    """Ratios by place, then the cells that changed most, either way."""
    text = markdown_table(["", "memory", "geometric mean", "least", "most", "cells"],
                          [[str(place), memory, *(f"{value:.2f}" for value in (mean(ratios), min(ratios), max(ratios))),
                            str(len(ratios))]
                           for place in sorted({change.place for change in changes}, key=lambda one: one.order)
                           for memory in ("ordinary", "registered")
                           if (ratios := [one.ratio for one in changes if (one.place, one.line.memory) == (place, memory)])])
    ordered = sorted(changes, key=lambda one: one.ratio)
    worse = [one for one in ordered if one.ratio < 1][:listed]
    better = [one for one in ordered[::-1] if one.ratio > 1][:listed]
    for title, cells in (("Slower", worse), ("Faster", better)):
        if cells:
            text += ["", f"{title} most:", ""]
            text += [f"- {one.ratio:.2f}: {one.place}: {one.line}, {size_text(one.bytes)}: {time_text(one.before)} us before, "
                     f"{time_text(one.after)} us after" for one in cells]
    return "\n".join(text)
