#!/usr/bin/env python3
"""Jobs across hosts that are network namespaces, joined by a bridge.

    tests/multihost/multihost_test.py --bin build/release/bin            all of it
    tests/multihost/multihost_test.py --bin build/release/bin --short    the form that the tests use
    tests/multihost/multihost_test.py --bin build/release/bin --short mtu cable

Each host has an interface eth0 to the bridge, 10.77.0.N and fd77::N. Nothing is configured but who the ranks are and where
they meet. Where namespaces are not allowed the exit status is 77 and the last line says why.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/lib"))
from network import CannotRun, Network, check_machine  # noqa: E402  pylint: disable=wrong-import-position

PORT = 40_177  # every case has namespaces of its own


class Job:
    """One rank on each host, two on the first."""

    def __init__(self, network, options, place, arguments, settings, program="all_reduce_perf"):
        self.network, self.ranks, self.began = network, [], time.monotonic()
        self.hosts = [network.hosts[0], *network.hosts]
        for rank, host in enumerate(self.hosts):
            told = {"TUTTI_RANK": rank, "TUTTI_SIZE": len(self.hosts), "TUTTI_HOST_ID": f"host {host}", **place, **settings}
            environment = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_")}
            environment.update({name: str(value) for name, value in told.items()})
            output = tempfile.TemporaryFile()
            words = [*network.entering(host), os.path.join(options.bin, program)]
            self.ranks.append((subprocess.Popen([*words, *arguments], env=environment, stdin=subprocess.DEVNULL,
                                                stdout=output, stderr=subprocess.STDOUT), output))

    def wait(self, seconds):
        """Exit statuses, and what each rank printed. A rank that hangs has the status None."""
        statuses, texts = [], []
        end = time.monotonic() + seconds
        for process, output in self.ranks:
            try:
                statuses.append(process.wait(max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                statuses.append(None)
            output.seek(0)
            texts.append(output.read().decode(errors="replace"))
            output.close()
        return statuses, texts


def own(path, flags):
    """Opens a file that nobody else may read, as secrets must be."""
    return os.open(path, flags, 0o600)


class Cases:
    def __init__(self, options):
        self.options = options
        self.patience = float(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
        self.folder = tempfile.TemporaryDirectory()
        self.secret = os.path.join(self.folder.name, "secret")
        with open(self.secret, "w", encoding="utf-8", opener=own) as file:
            file.write(os.urandom(16).hex())

    def job(self, network, place, largest="256K", settings=None):
        largest = largest if self.options.short else "8M"
        arguments = ["-b", "8", "-e", largest, "-f", "32", "-n", "2", "-w", "1"]
        return Job(network, self.options, place, arguments, {"TUTTI_JOIN_TIMEOUT_MS": int(20_000 * self.patience),
                                                             **(settings or {})})

    def check(self, network, place, **more):
        """Runs a job, whose sums must be right. Returns what was printed."""
        statuses, texts = self.job(network, place, **more).wait((40 if self.options.short else 300) * self.patience)
        everything = "\n".join(texts)
        if any(status != 0 for status in statuses) or everything.count("Out of bounds values : 0 OK") != 1:
            raise AssertionError(f"exit statuses {statuses}\n{everything[-6000:]}")
        return everything

    def at_root(self, address):
        return {"TUTTI_ROOT": f"{address}:{PORT}", "TUTTI_SECRET_FILE": self.secret}

    def with_id_file(self, network):
        path = os.path.join(self.folder.name, f"id-{time.monotonic()}")
        words = (*network.entering(1), os.path.join(self.options.bin, "tutti_make_id"))
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
            with open(path + ".new", "w", encoding="utf-8", opener=own) as file:
                file.write(maker.stdout.readline())
            os.rename(path + ".new", path)
            self.check(network, {"TUTTI_ID_FILE": path})

    # One case each

    def plain(self):
        """Three hosts that have nothing special, with a secret and without."""
        with Network(3) as network:
            said = self.check(network, self.at_root("10.77.0.1"))
            assert "not authenticated" not in said, said
        with Network(3) as network:
            said = self.check(network, {"TUTTI_ROOT": f"10.77.0.1:{PORT}"})
            assert said.count("is not authenticated") == 1, said

    def id_file(self):
        """The unique id of a process on the first host, in a file, is all that the ranks know."""
        with Network(3) as network:
            self.with_id_file(network)

    def slow(self):
        """One link has 20 Mbit/s."""
        with Network(3) as network:
            network.limit(2, "20mbit")
            self.check(network, self.at_root("10.77.0.1"), largest="64K")

    def last_words(self):
        """A rank sends a message over a link of 400 kbit/s, and leaves long before it has arrived."""
        with Network(3) as network:
            network.limit(3, "400kbit")
            job = Job(network, self.options, self.at_root("10.77.0.1"), [], {}, program="tutti_last_words")
            statuses, texts = job.wait(60 * self.patience)
            if any(status != 0 for status in statuses):
                raise AssertionError(f"exit statuses {statuses}\n{texts}")

    def mtu(self):
        """One link carries packets of 1280 bytes."""
        with Network(3) as network:
            network.shrink_packets(2, 1280)
            self.check(network, self.at_root("10.77.0.1"))

    def ipv6(self):
        """One host has no IPv4 address, then the first has none."""
        for only in (3, 1):
            with Network(3) as network:
                network.take_family(only, 4)
                self.check(network, self.at_root("[fd77::1]"))

    def ipv4(self):
        """One host has no IPv6 address."""
        with Network(3) as network:
            network.take_family(2, 6)
            self.check(network, self.at_root("10.77.0.1"))

    def dead_end(self):
        """The first interfaces lead nowhere, one though it has the default route; one has the same address on all hosts, as
        docker0 has. Told an address, then with an id that holds them all."""
        with Network(3, dead_ends=("aaa0", "docker0")) as network:
            for host in network.hosts:
                network.ip(host, "route", "replace", "default", "via", f"10.99.{host}.2")
            self.check(network, self.at_root("10.77.0.1"))
            self.with_id_file(network)

    def several_nets(self):
        """The hosts share a second net; one is not in the first, which all others would rather use."""
        with Network(3) as network:
            for host in network.hosts:
                network.ip(host, "addr", "add", f"10.88.0.{host}/24", "dev", "eth0")
            network.ip(3, "addr", "del", "10.77.0.3/24", "dev", "eth0")
            network.take_family(3, 6)
            self.check(network, self.at_root("10.88.0.1"))

    def link_local(self):
        """Nothing but the addresses that IPv6 interfaces give themselves; the id file tells them."""
        with Network(3) as network:
            # The number of eth0 differs from host to host.
            for host in network.hosts:
                for _ in range(host):
                    network.ip(host, "link", "del", "eth0")
                    network.plug(host)
                network.take_family(host, 4)
                network.take_family(host, 6)
            self.with_id_file(network)

    def interface(self):
        """Told to use the interface that leads to the others, then one that leads nowhere: it is obeyed."""
        with Network(3, dead_ends=("aaa0",)) as network:
            self.check(network, self.at_root("10.77.0.1"), settings={"TUTTI_SOCKET_IFNAME": "eth0"})
        with Network(3, dead_ends=("aaa0",)) as network:
            settings = {"TUTTI_SOCKET_IFNAME": "aaa0", "TUTTI_JOIN_TIMEOUT_MS": int(2000 * self.patience)}
            statuses, texts = self.job(network, self.at_root("10.77.0.1"), settings=settings).wait(30 * self.patience)
            everything = "\n".join(texts)
            if any(status in (0, None) for status in statuses) or "could not join" not in everything:
                raise AssertionError(f"exit statuses {statuses}\n{everything[-6000:]}")

    def cable(self):
        """The link of the last host, then of the first, is taken down in the middle of a run: every rank ends with an error
        that says who is gone."""
        settings = {"TUTTI_HEARTBEAT_MS": int(1000 * self.patience)}
        for lost in (3, 1):
            with Network(3) as network:
                job = Job(network, self.options, self.at_root("10.77.0.1"), ["-b", "64K", "-e", "64K", "-N", "0"], settings)
                self.await_rows(job)
                network.ip(lost, "link", "set", "eth0", "down")
                # Far less than the thirty minutes of an operation: a hang shows.
                statuses, texts = job.wait(30 * self.patience)
                everything = "\n".join(texts)
                said = [re.search(r"rank \d+ \(host \S+, pid \d+\)", text) is not None for text in texts]
                if any(status in (0, None) for status in statuses) or not all(said):
                    raise AssertionError(f"host {lost}: exit statuses {statuses}, named {said}\n{everything[-6000:]}")

    def doctor(self):
        """tutti-doctor net where one host's packets are shorter, and two hosts do not reach each other: both are told, by
        rank 0, and the rest is measured."""
        with Network(3) as network:
            network.shrink_packets(2, 1280)
            network.cut(2, 3)
            settings = {"TUTTI_JOIN_TIMEOUT_MS": int(20_000 * self.patience), "TUTTI_TRANSPORT": "shm,tcp"}
            job = Job(network, self.options, self.at_root("10.77.0.1"), ["net", "--json", "--timeout", str(int(3 * self.patience))],
                      settings, program="tutti-doctor")
            statuses, texts = job.wait(60 * self.patience)
            if statuses != [1, 0, 0, 0] or "".join(texts[1:]):
                raise AssertionError(f"exit statuses {statuses}\n{texts}")
            said = json.loads(texts[0])
            works = {(one["low"], one["high"], one["transport"]): one["works"] for one in said["pairs"]}
            assert works == {(0, 1, "shm"): True, (0, 2, "tcp"): True, (0, 3, "tcp"): True, (2, 3, "tcp"): False}, works
            told = [f"{one['severity']}: {one['who']}: {one['what']}" for one in said["findings"]]
            for wanted in (r"error: \S+ \(rank 2\) and \S+ \(rank 3\): they do not reach each other over tcp: \S+",
                           r"warning: \S+: eth0 has an MTU of 1280, other hosts in 10\.77\.0\.0/24 have 1500"):
                assert any(re.match(wanted, line) for line in told), told

    def preflight(self):
        """What hosts lack is told before a job that runs all the same: by rank 0, and where any rank asks for it."""
        with Network(3) as network:
            network.shrink_packets(2, 1280)
            said = self.check(network, self.at_root("10.77.0.1"), settings={"TUTTI_PREFLIGHT": 1})
            assert len(re.findall(r"TUTTI_PREFLIGHT: \S+: eth0 has an MTU of 1280", said)) == 1, said

    def await_rows(self, job):
        """Until rank 0 has shown the first results."""
        process, output = job.ranks[0]
        end = time.monotonic() + 30 * self.patience
        while b" float " not in os.pread(output.fileno(), 1 << 16, 0):
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the job does not start\n{job.wait(0)[1]}")
            time.sleep(0.05)


CASES = ("plain", "id_file", "slow", "last_words", "mtu", "ipv6", "ipv4", "dead_end", "several_nets", "link_local",
         "interface", "cable", "doctor", "preflight")


def main():
    parser = argparse.ArgumentParser(description="Jobs across network namespaces.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of: " + ", ".join(CASES) + " (all)")
    parser.add_argument("--bin", default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    parser.add_argument("--short", action="store_true", help="the form that the tests use")
    options = parser.parse_args()
    if options.bin is None or set(options.cases) - set(CASES):
        parser.error("--bin is missing" if options.bin is None else "no such case")
    try:
        check_machine()
    except CannotRun as reason:
        print(f"skipped: {reason}")
        return 77
    cases, faults = Cases(options), 0
    for name in options.cases or CASES:
        began = time.monotonic()
        try:
            getattr(cases, name)()
            fault = None
        except AssertionError as error:
            fault, faults = error, faults + 1
        print(f"{'FAILED' if fault else 'ok':<7}{time.monotonic() - began:6.2f} s  {name:<13}"
              f"{fault or ' '.join(getattr(cases, name).__doc__.split())}", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
