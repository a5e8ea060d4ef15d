"""A comparison: rounds in which every configuration measures its cells in turn, an operation at a time, so that what is compared
was measured within seconds, and none has the better minutes."""
import contextlib
import os
import statistics
import sys
import time

import jobs
import machine
from cells import Cell
from network import CannotRun, Network, check_machine
from programs import Trouble
from systems import NAMES

SLOW = 4  # times tutti's time: beyond, two short looks at a peer are enough
HOPELESS = 2  # times the best peer's: beyond, the first round is enough, or where minutes are told apart
TELLING = 3  # such rounds, none of which was better
RESTARTS = 3  # of a job that fails
SET_UP = 60  # seconds that a job may take beside its cells
A_CELL = 4  # seconds that one may take


def note(text):
    print(text, file=sys.stderr, flush=True)


class Comparison:
    """What was measured so far: {(configuration, ranks, cell): {round: Timing}}."""

    def __init__(self, programs, configurations, cells, options):
        self.programs, self.configurations, self.cells, self.options = programs, configurations, cells, options
        self.cpus = machine.cpus()
        self.real_time = machine.may_be_real_time()
        self.times, self.others, self.limits, self.troubles = {}, {}, {}, []
        self.last = self.done = 0  # rounds that were begun, and that were told
        self.network = None  # of namespaces, if ranks are to be apart

    # --- measuring ---

    def rounds(self, after_each):
        with contextlib.ExitStack() as stack:
            if "namespaces" in self.options.transport:
                self.network = stack.enter_context(self.hosts())
            for number in range(1, self.options.rounds + 1):
                self.round(number)
                after_each()
                self.done = number

    def hosts(self):
        try:
            check_machine()
        except CannotRun as reason:
            raise Trouble(f"namespaces cannot be measured: {reason}") from reason
        return Network(max(self.options.ranks))

    def round(self, number):
        self.last = number
        if self.options.limits:
            self.measure_limits(number)
        # Back and forth, so that what changes slowly favours none.
        turn = self.configurations if number % 2 else self.configurations[::-1]
        for ranks in self.options.ranks:
            for transport in self.options.transport:
                for operation in dict.fromkeys(cell.op for cell in self.cells):
                    for configuration in turn:
                        if configuration.transport == transport:
                            self.job(number, configuration, ranks, operation)

    def job(self, number, configuration, ranks, operation):
        lines = self.lines(configuration, ranks, operation)
        if not lines:
            return
        name = f"{configuration.transport}, {ranks} ranks, {operation}, {NAMES[configuration.system]} {configuration.name}"
        others, start = machine.Others(), time.monotonic()
        times, used = self.in_spite_of_failures(name, configuration, ranks, lines)
        share = others.share(used)
        for cell, timing in times.items():
            self.times.setdefault((configuration, ranks, cell), {})[number] = timing
            self.others.setdefault((configuration, ranks, cell), []).append(share)
        note(f"round {number} of {self.options.rounds}: {name}: {len(times)} of {len(lines)} cells in "
             f"{time.monotonic() - start:.1f} s{f', others took {share:.0%} of the machine' if share > 0.1 else ''}")

    def in_spite_of_failures(self, name, configuration, ranks, lines):
        """All times of a job, and the seconds of processors that it had. After a failure another job goes on behind that cell."""
        times, used = {}, 0
        environment = configuration.environment(os.environ, ranks, len(self.cpus))
        for _ in range(1 + RESTARTS):
            outcome = jobs.measure(self.programs[configuration.system], ranks, lines, self.arguments(configuration, ranks), environment,
                                   SET_UP + A_CELL * len(lines), self.network if configuration.transport == "namespaces" else None)
            times.update(outcome.times)
            used += outcome.used
            if outcome.trouble:
                self.troubles.append(f"{name}: {outcome.trouble}")
                note(f"    {outcome.trouble}")
            lines = lines[outcome.begun + 1:] if outcome.trouble and outcome.begun is not None else []
            if not lines:
                break
        return times, used

    def lines(self, configuration, ranks, operation):
        """The cells of a job. What is far from the best is not measured again, and what is slow not thoroughly."""
        lines = []
        for cell in self.cells:
            if cell.op != operation or not configuration.takes(cell) or self.is_hopeless(configuration, ranks, cell):
                continue
            ours = self.best({"tutti"}, configuration.transport, ranks, cell)
            lines.append(cell.line(SLOW * ours if ours and configuration.system != "tutti" else 0))
        return lines

    def is_hopeless(self, configuration, ranks, cell):
        if configuration.system == "tutti" or (configuration, ranks, cell) not in self.times:
            return False
        times = self.times[configuration, ranks, cell].values()
        best = self.best(set(NAMES) - {"tutti"}, configuration.transport, ranks, cell)
        if any(timing.line for timing in times):
            return len(times) >= TELLING and min(timing.us for timing in times) > HOPELESS * best
        return self.median(configuration, ranks, cell) > HOPELESS * best

    def best(self, systems, transport, ranks, cell):
        medians = [self.median(one, ranks, cell) for one in self.configurations
                   if one.system in systems and one.transport == transport and (one, ranks, cell) in self.times]
        return min(medians, default=0)

    def median(self, configuration, ranks, cell):
        return statistics.median(timing.us for timing in self.times[configuration, ranks, cell].values())

    def arguments(self, configuration, ranks):
        arguments = ["--budget", str(self.options.budget), "--cpus", ",".join(map(str, self.cpus))]
        if configuration.pins(ranks, len(self.cpus)):
            arguments += ["--pinned"]
        if configuration.interface != "lo":
            arguments += ["--interface", configuration.interface]
        if configuration.mode:
            arguments += ["--mode", configuration.mode]
        if self.options.busy:
            arguments += ["--busy"]
        if configuration.real_time and self.real_time and not self.options.busy:  # the busy thread is to take its share
            arguments += ["--real-time"]
        return arguments

    def measure_limits(self, number):
        """Of this round, for the vectors of the cells."""
        cells = sorted({Cell(cell.op, "float", cell.bytes, False) for cell in self.cells})
        arguments = ["--counts", ",".join(map(str, self.options.ranks)), "--cpus", ",".join(map(str, self.cpus)),
                     "--budget", str(self.options.budget)]
        if self.network:
            arguments += ["--hosts", f"{self.network.path(1)},{self.network.path(2)}", "--address", self.network.address(1)]
        start = time.monotonic()
        rows, trouble = jobs.measure_limits(self.options.bin / "compare_limits", [cell.line() for cell in cells], arguments,
                                            dict(os.environ), SET_UP + A_CELL * len(cells) * (1 + len(self.options.ranks)))
        for row in rows:
            key = tuple(row[name] for name in ("config", "op", "transport", "ranks", "bytes"))
            self.limits.setdefault(key, {})[number] = jobs.Timing(row["us"], row.get("line_us"))
        note(f"round {number} of {self.options.rounds}: the limits of the machine in {time.monotonic() - start:.1f} s")
        if trouble:
            self.troubles.append(f"limits of the machine: {trouble}")

    # --- results ---

    def rows(self):
        """What docs/comparing.md says of the file."""
        rows = [{"system": "machine", "config": machine.description()}]
        for (configuration, ranks, cell), times in self.times.items():
            rows.append({"system": configuration.system, "config": configuration.name, "op": cell.op, "type": cell.type,
                         "transport": configuration.transport, "ranks": ranks, "bytes": cell.bytes,
                         "in_place": cell.in_place, "memory": configuration.memory, "busy": bool(self.options.busy), **self.turns(times),
                         "others": round(max(self.others[configuration, ranks, cell]), 3),
                         "version": self.programs[configuration.system].version})
        for (config, operation, transport, ranks, count), times in self.limits.items():
            rows.append({"system": "limit", "config": config, "op": operation, "type": "float", "transport": transport,
                         "ranks": ranks, "bytes": count, "in_place": False, "memory": "ordinary", "busy": False, **self.turns(times)})
        return rows

    def turns(self, times):
        """What a row tells of {round: Timing}."""
        turns = [times.get(number) for number in range(1, self.last + 1)]
        return {"median_us": round(statistics.median(turn.us for turn in times.values()), 4),
                "rounds_us": [turn and round(turn.us, 4) for turn in turns],
                "lines_us": [turn and turn.line and round(turn.line, 3) for turn in turns]}
