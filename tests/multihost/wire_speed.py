#!/usr/bin/env python3
"""How near all-reduces between two hosts come to what their wire allows. The hosts are network namespaces, whose wire has 1 Gbit/s
each way (tbf).

    tests/multihost/wire_speed.py --bin build/release/bin                        5 runs of 1, 2 and 4 ranks a host
    tests/multihost/wire_speed.py --bin build/release/bin --sizes 16M --ranks 2 --runs 1
    tests/multihost/wire_speed.py --bin build/release/bin TUTTI_ALGO=ring        with that setting

Of an all-reduce each host sends at least the message: what is printed is its time in units of that, of calls out of place and in place. Each
size is a job of its own, between hosts of its own. Beside them stands what a plain stream each way took, of 64 MiB, in its own unit: on a
busy machine the wire itself is slower than it says. A twentieth more than 1 is what packets have beside their data.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/lib"))
from network import CannotRun, Network, check_machine  # noqa: E402  pylint: disable=wrong-import-position

PORT = 40_178
BYTES_A_SECOND = 125_000_000
SECONDS = 120  # of a job
STREAM = 64 << 20
# One end of two streams; the number of its host is its argument.
END = f"""
import socket, sys, threading, time
if sys.argv[1] == "1":
    listening = socket.create_server(("0.0.0.0", {PORT}))
    print("ready", flush=True)
    there = listening.accept()[0]
else:
    there = socket.create_connection(("10.77.0.1", {PORT}))
began, got, into = time.monotonic(), 0, bytearray(1 << 20)
sender = threading.Thread(target=there.sendall, args=(bytes({STREAM}),))
sender.start()
while got < {STREAM}:
    got += there.recv_into(into) or sys.exit("the stream ended")
print(time.monotonic() - began)
sender.join()
"""


def size_of(text):
    found = re.fullmatch(r"(\d+)([KM]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no size, as 64K or 16M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20}[found[2]]


def list_of(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def setting(text):
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("TUTTI_"):
        raise argparse.ArgumentTypeError(f"'{text}' is no setting, as TUTTI_ALGO=ring")
    return name, value


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", type=setting, metavar="TUTTI_NAME=VALUE", help="of all ranks")
    parser.add_argument("--bin", required=True, help="where the programs are")
    parser.add_argument("--ranks", type=list_of(int), default=[1, 2, 4], help="of each host: 1,2,4 unless told")
    parser.add_argument("--sizes", type=list_of(size_of), default=[64 << 10, 1 << 20, 16 << 20], help="64K,1M,16M unless told")
    parser.add_argument("--runs", type=int, default=5, help="5 unless told")
    return parser.parse_args()


class Hosts(Network):
    """Two, with such a wire."""

    def __init__(self):
        super().__init__(2)

    def make_wire(self):
        for host in self.hosts:
            self.limit(host, "1gbit", "128kb")  # less is not kept up by a machine that does other things as well

    def start(self, host, words, **told):
        return subprocess.Popen([*self.entering(host), *words], stdin=subprocess.DEVNULL, text=True, **told)


def of_streams():
    """What the slower of the two took."""
    with Hosts() as hosts:
        hosts.make_wire()
        first = hosts.start(1, (sys.executable, "-c", END, "1"), stdout=subprocess.PIPE)
        first.stdout.readline()
        ends = [first, hosts.start(2, (sys.executable, "-c", END, "2"), stdout=subprocess.PIPE)]
        return max(float(end.communicate(timeout=SECONDS)[0]) for end in ends) * BYTES_A_SECOND / STREAM


def environment(told):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
    return {**kept, **{name: str(value) for name, value in told.items()}}


def of_calls(options, each, size):
    """What one call out of place took, and one in place."""
    ranks, jobs = 2 * each, []
    times = ("-n", "40", "-w", "10") if size <= 1 << 20 else ("-n", "8", "-w", "2")
    words = (os.path.join(options.bin, "all_reduce_perf"), "-b", str(size), "-e", str(size), *times, "-c", "0")
    with Hosts() as hosts, tempfile.TemporaryFile("w+") as output:
        hosts.make_wire()
        try:
            for rank in range(ranks):
                host = rank // each + 1
                told = {"TUTTI_RANK": rank, "TUTTI_SIZE": ranks, "TUTTI_HOST_ID": f"host {host}", "TUTTI_ROOT": f"10.77.0.1:{PORT}",
                        **dict(options.settings)}
                jobs.append(hosts.start(host, words, env=environment(told), stdout=output if rank == 0 else subprocess.DEVNULL,
                                        stderr=output if rank == 0 else subprocess.DEVNULL))
            statuses = [job.wait(SECONDS) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        output.seek(0)
        said = output.read()
    row = re.search(rf"^ *{size} .*$", said, re.MULTILINE)
    if any(statuses) or not row:
        sys.exit(f"wire_speed: the job failed, its ranks' statuses are {statuses}\n{said[-3000:]}")
    columns = row[0].split()
    return [float(us) * BYTES_A_SECOND / 1e6 / size for us in (columns[5], columns[9])]


def main():
    options = parse_options()
    check_machine()
    print("ranks a host" + "".join(f"{f'{size >> 10} KiB':>16}" for size in options.sizes) + "    the wire itself")
    for _ in range(options.runs):
        for each in options.ranks:
            cells = [of_calls(options, each, size) for size in options.sizes]
            print(f"{each:12}" + "".join(f"{out:10.2f}{inside:6.2f}" for out, inside in cells) + f"{of_streams():19.2f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except CannotRun as reason:
        print(reason)
        sys.exit(77)
