"""Hosts that are network namespaces, joined by a bridge: for tests, and for measuring."""
import os
import shutil
import subprocess


class CannotRun(Exception):
    """The machine lacks something."""


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def check_machine():
    if os.geteuid() != 0:
        raise CannotRun("network namespaces need root")
    for program in ("ip", "tc", "sysctl", "nsenter"):
        if shutil.which(program) is None:
            raise CannotRun(f"{program} is not installed")
    try:
        with Network(1):
            pass
    except (RuntimeError, OSError) as error:
        raise CannotRun(f"network namespaces are not allowed here: {error}") from error


class Network:
    """Hosts 1..n and a bridge, each a network namespace; gone when left."""

    def __init__(self, hosts, dead_ends=()):
        self.hosts, self.made, self.dead_ends = range(1, hosts + 1), [], dead_ends

    def __enter__(self):
        try:
            self.make("hub")
            self.ip("hub", "link", "add", "br0", "type", "bridge")
            self.ip("hub", "addr", "add", "10.77.0.254/24", "dev", "br0")
            self.ip("hub", "link", "set", "br0", "up")
            for host in self.hosts:
                self.make(host)
                for name in self.dead_ends:
                    self.dead_end(host, "172.17.0.1/16" if name == "docker0" else f"10.99.{host}.1/24", name)
                self.plug(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(("ip", "netns", "del", name), capture_output=True)

    def name(self, host):
        return f"tutti-{os.getpid()}-{host}"

    def make(self, host):
        self.made.append(self.name(host))  # first: who is interrupted behind that removes it as well
        command("ip", "netns", "add", self.name(host))
        # Addresses count at once, without a test whether anybody else has them.
        for scope in ("all", "default"):
            self.run(host, "sysctl", "-qw", f"net.ipv6.conf.{scope}.accept_dad=0", f"net.ipv6.conf.{scope}.disable_ipv6=0")
        self.ip(host, "link", "set", "lo", "up")

    def path(self, host):
        """The file that is the host's namespace."""
        return f"/run/netns/{self.name(host)}"

    def address(self, host):
        return f"10.77.0.{host}"

    def entering(self, host):
        """What stands in front of a command there."""
        return ["nsenter", f"--net={self.path(host)}"]

    def run(self, host, *words):
        command(*self.entering(host), *words)

    def ip(self, host, *words):
        command("ip", "-n", self.name(host), *words)

    def plug(self, host):
        self.ip(host, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{host}", "netns", self.name("hub"))
        self.ip("hub", "link", "set", f"port{host}", "master", "br0", "up")
        self.ip(host, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        self.ip(host, "addr", "add", f"fd77::{host}/64", "dev", "eth0", "nodad")
        self.ip(host, "link", "set", "eth0", "up")
        self.ip(host, "route", "add", "default", "via", "10.77.0.254")

    # What can be wrong with a host

    def limit(self, host, rate, burst="32kbit"):
        for place, device in ((host, "eth0"), ("hub", f"port{host}")):
            command("tc", "-n", self.name(place), "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst",
                    burst, "latency", "100ms")

    def shrink_packets(self, host, mtu):
        for place, device in ((host, "eth0"), ("hub", f"port{host}")):
            self.ip(place, "link", "set", device, "mtu", str(mtu))

    def cut(self, host, other):
        """These two do not hear of each other; the others reach both."""
        for one in (host, other):
            self.ip("hub", "link", "set", f"port{one}", "type", "bridge_slave", "isolated", "on")

    def take_family(self, host, family):
        self.ip(host, f"-{family}", "addr", "flush", "dev", "eth0", "scope", "global")

    def dead_end(self, host, address, name):
        """An interface that is up and leads nowhere: its other end lies open in the hub."""
        self.ip(host, "link", "add", name, "type", "veth", "peer", "name", f"{name}-{host}", "netns", self.name("hub"))
        self.ip("hub", "link", "set", f"{name}-{host}", "up")
        self.ip(host, "addr", "add", address, "dev", name)
        self.ip(host, "link", "set", name, "up")
