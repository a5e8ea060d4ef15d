#!/usr/bin/env python3
"""What is tried over RDMA, inside a virtual machine with soft-RoCE (machine.py starts it, as root):

    guest_cases.py --bin DIR [--quick] [CASE ...]

It makes its devices, breaks them, and counts what is left on them.
"""
import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SIZES = ["-b", "8", "-e", "256K", "-f", "32", "-n", "3", "-w", "1", "-c", "1"]
SOON = 240  # seconds: nothing is quick here
# A packet is given up after 4 x 67 ms, so that a broken way shows within a case's patience.
BREAKS_SOON = {"TUTTI_IB_TIMEOUT": "14", "TUTTI_IB_RETRY_CNT": "3"}


def quiet(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def ethernet():
    return "eth0" if Path("/sys/class/net/eth0").exists() else "dummy0"


def held(kind):
    """How many queue pairs ("qp") or pieces of registered memory ("mr") all devices have for anybody but the kernel."""
    return sum(1 for line in quiet("rdma", "resource", "show", kind).splitlines() if " pid " in line)


def wait_for(what, condition):
    until = time.monotonic() + SOON
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"still not after {SOON} s: {what}")
        time.sleep(0.05)


@contextlib.contextmanager
def readable_programs(binaries):
    """A copy that every user may read: where a build lies, others may not look."""
    for node in Path("/dev/infiniband").iterdir():
        node.chmod(0o666)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for file in (binaries / "all_reduce_perf", *(binaries.parent / "lib").glob("libtutti*.so*")):
            shutil.copy(file, folder)
        yield folder


def run_limited(folder, locked, *words, **variables):
    """What all_reduce_perf says as a user that may lock so many bytes: root may lock what it likes."""
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))  # noqa: E731
    done = subprocess.run([*nobody, f"{folder}/all_reduce_perf", *words], capture_output=True, text=True, preexec_fn=limit,
                          env={**os.environ, "LD_LIBRARY_PATH": folder, **variables}, timeout=SOON)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        raise AssertionError(said)
    return said


class Case(unittest.TestCase):
    BIN = Path(".")
    QUICK = False

    def environment(self, more):
        return {**os.environ, "TUTTI_DEBUG": "info", **more}

    def start(self, program, *words, inside=(), **variables):
        return subprocess.Popen([*inside, self.BIN / program, *words], env=self.environment(variables), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, job):
        said = job.communicate(timeout=SOON)[0]
        return job.returncode, said

    def run_program(self, program, *words, **variables):
        return self.finish(self.start(program, *words, **variables))

    def succeeds(self, program, *words, **variables):
        status, said = self.run_program(program, *words, **variables)
        self.assertEqual(status, 0, f"{program} {words}\n{said}")
        return said

    def all_reduce(self, *words, **variables):
        said = self.succeeds("all_reduce_perf", *SIZES, *words, **variables)
        self.assertIn("Out of bounds values : 0 OK", said)
        return said

    def falls_back(self, *texts, **variables):
        """The job runs over TCP and says why; where nothing but verbs is allowed it ends, and says the same."""
        said = self.all_reduce("--ranks", "2", "--transport", "^p2p,shm", **variables)
        self.assertIn("tcp to rank", said)
        status, refusal = self.run_program("all_reduce_perf", *SIZES, "--ranks", "2", "--transport", "verbs", **variables)
        self.assertNotEqual(status, 0, refusal)
        for text in texts:
            self.assertRegex(said, text)
            self.assertRegex(refusal, text)
        return said

    def tearDown(self):
        self.assertEqual((held("qp"), held("mr")), (0, 0), "left on the devices")


class Links(Case):
    """What tests/conformance asks of every transport."""

    def test_conformance(self):
        left_out = "" if not self.QUICK else ":-*LongRunsOfSmallSlots*"
        done = subprocess.run([self.BIN / "tutti_conformance_tests", f"--gtest_filter=*LinkTest.*/verbs{left_out}"],
                              capture_output=True, text=True, env=dict(os.environ, TUTTI_TEST_PATIENCE="8"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("SKIPPED", done.stdout)
        self.assertRegex(done.stdout, r"PASSED  \] [1-9]\d* tests")

    def test_queue_pairs(self):
        said = quiet(self.BIN / "tutti_verbs_tests", "--gtest_filter=DeviceLink.*")
        self.assertNotIn("SKIPPED", said)


class Collectives(Case):
    def test_all_of_them(self):
        programs = sorted(one.name for one in self.BIN.glob("*_perf"))
        self.assertGreater(len(programs), 8)
        for program in programs:
            for ranks in ("2", "4"):
                said = self.succeeds(program, *SIZES, "--ranks", ranks, "--transport", "verbs", TUTTI_DEBUG="warn")
                self.assertIn("Out of bounds values : 0 OK", said)

    def test_several_queue_pairs(self):
        self.all_reduce("--ranks", "2", "--transport", "verbs", TUTTI_IB_QPS_PER_CONNECTION="4")

    def test_shared_memory_within_hosts_and_verbs_between_them(self):
        said = self.all_reduce("--ranks", "4", "--algo", "hierarchical", TUTTI_GROUP_SIZE="2", TUTTI_TRANSPORT="shm,verbs")
        self.assertIn("shm to rank", said)
        ranks = [self.start("all_reduce_perf", *SIZES, TUTTI_RANK=str(rank), TUTTI_SIZE="4", TUTTI_ROOT="127.0.0.1:40177",
                            TUTTI_SECRET="vm", TUTTI_HOST_ID=f"n{rank // 2}", TUTTI_TRANSPORT="shm,verbs") for rank in range(4)]
        for rank, job in enumerate(ranks):
            status, said = self.finish(job)
            self.assertEqual(status, 0, said)
            self.assertIn(f"shm to rank {rank ^ 1} ", said)
            self.assertIn("verbs to rank", said)

    def test_nothing_that_is_to_be_secret_goes_over_it(self):
        self.falls_back("verbs: it does not encrypt, as TUTTI_ENCRYPT asks for", TUTTI_ENCRYPT="1", TUTTI_HOST_ID="")


class GpuMemory(Case):
    """Slots in the memory of emulated GPUs, which the device takes by its address: it takes no dma-buf."""

    def test_all_collectives(self):
        said = quiet(self.BIN / "tutti_emulation_tests", "--gtest_filter=GpuDirectLinks.GoOverRdma")
        self.assertNotIn("SKIPPED", said)


class RegisteredMemory(Case):
    """What is sent out of the program's memory, where the device has it registered, and out of slots where not."""
    WORDS = ["-b", "640K", "-e", "640K", "-n", "3", "-w", "1", "-c", "1", "--ranks", "2", "--transport", "verbs"]

    def in_place(self, said):
        """How many slots were sent so, by both ranks."""
        self.assertIn("Out of bounds values : 0 OK", said)
        return sum(int(count) for count in re.findall(r"(\d+) of \d+ slots were sent from registered memory", said))

    def runs(self, kind, *words, **variables):
        said = self.succeeds("all_reduce_perf", *self.WORDS, "-R", kind, *words, TUTTI_DEBUG="debug", **variables)
        return self.in_place(said), said

    def test_what_is_registered_or_allocated_is_sent_from_there(self):
        for kind in ("1", "2"):
            count, said = self.runs(kind)
            self.assertGreater(count, 50, said)
            self.assertNotIn("copied into slots", said)

    def test_ordinary_memory_is_not(self):
        self.assertEqual(self.runs("0")[0], 0)
        self.assertEqual(self.runs("2", TUTTI_IB_MEMORY_MIB="0")[0], 0)

    def test_more_buffers_than_may_be_registered_at_a_time(self):
        """One of the two that a rank has, both of which a ring sends from: now the input, now the output, which in place is both."""
        all_of_it, _ = self.runs("1", "--algo", "ring", "-N", "2")
        count, said = self.runs("1", "--algo", "ring", "-N", "2", TUTTI_IB_MEMORY_MIB="1")
        self.assertGreater(count, 50, said)
        self.assertLess(count, all_of_it, said)
        self.assertRegex(said, r"rxe0 may register 1048576 bytes \(TUTTI_IB_MEMORY_MIB\), and others are in use")

    def test_the_limit_of_locked_memory_is_reached(self):
        """It leaves room for the link, and for no buffer."""
        with readable_programs(self.BIN) as folder:
            said = run_limited(folder, 1600 << 10, *self.WORDS, "-R", "1", TUTTI_DEBUG="debug", TUTTI_CHANNELS="1")
        self.assertEqual(self.in_place(said), 0, said)
        self.assertIn("verbs to rank", said)
        self.assertRegex(said, r"bytes of registered memory are copied into slots and not sent from where they are: rxe0 does not "
                         r"register them: Cannot allocate memory \(`ulimit -l` is the limit of locked memory\)")


class Deaths(Case):
    def test_a_killed_rank(self):
        """The others know within a second of their own time, and nothing is left on the device."""
        job = self.start("all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "1000000", "-w", "1", "-c", "0", "--ranks", "3",
                         "--transport", "verbs")
        wait_for("links", lambda: held("qp") >= 4)
        time.sleep(2)  # in the middle of it
        victim = int(quiet("pgrep", "-n", "-P", str(job.pid)).split()[0])
        os.kill(victim, signal.SIGKILL)
        began = time.monotonic()
        status, said = self.finish(job)
        self.assertNotEqual(status, 0)
        self.assertRegex(said, rf"rank \d \(host \S+, pid {victim}\)")
        print(f"known and cleared away after {time.monotonic() - began:.1f} s")


class Devices(Case):
    """What a machine may lack: the job goes on over TCP and says why."""

    def test_no_port_of_that_name(self):
        self.falls_back(r"verbs: no RDMA port that may be used is active: rxe0:1 \(left out by TUTTI_IB_HCA=mlx5\)",
                        TUTTI_IB_HCA="mlx5")

    def test_no_address_of_that_number(self):
        self.falls_back(r"rxe0:1 has no address of TUTTI_IB_GID_INDEX=99", TUTTI_IB_GID_INDEX="99")

    def test_one_rank_alone_lacks_it(self):
        ranks = [self.start("all_reduce_perf", *SIZES, TUTTI_RANK=str(rank), TUTTI_SIZE="2", TUTTI_ROOT="127.0.0.1:40178",
                            TUTTI_SECRET="vm", TUTTI_HOST_ID=f"n{rank}", TUTTI_IB_HCA=name)
                 for rank, name in enumerate(("", "nosuch"))]
        for job in ranks:
            status, said = self.finish(job)
            self.assertEqual(status, 0, said)
            self.assertIn("tcp to rank", said)
            if "speaks for all" in said:
                self.assertRegex(said, r"not verbs: no RDMA port that may be used is active: rxe0:1 \(left out by "
                                 rf"TUTTI_IB_HCA=nosuch\) \(process {ranks[1].pid} on host ")

    def test_a_port_that_is_down(self):
        quiet("ip", "link", "set", ethernet(), "down")
        try:
            self.falls_back(r"verbs: no RDMA port that may be used is active: rxe0:1 \(down\)")
        finally:
            quiet("ip", "link", "set", ethernet(), "up")
            restore()

    def doctor(self, **variables):
        """What rank 0 of two hosts says of them, and its exit status."""
        ranks = [self.start("tutti-doctor", "net", "--json", "--milliseconds", "20", "--timeout", "60", TUTTI_RANK=str(rank),
                            TUTTI_SIZE="2", TUTTI_ROOT="127.0.0.1:40180", TUTTI_SECRET="vm", TUTTI_HOST_ID=f"n{rank}",
                            **{"TUTTI_DEBUG": "warn", **variables}) for rank in range(2)]
        (status, said), (other, quiet_one) = [self.finish(rank) for rank in ranks]
        self.assertEqual((other, quiet_one), (0, ""), said)
        self.assertIn("{", said)
        return status, json.loads(said[said.index("{"):])  # behind warnings, such as of the weak secret

    def test_the_doctor_sees_the_device_and_measures_it(self):
        _, said = self.doctor()
        self.assertEqual([(port["device"], port["port"], port["state"], port["used"]) for port in said["hosts"][1]["rdma"]],
                         [("rxe0", 1, "ACTIVE", True)])
        self.assertIn("RoCE v2", [gid["type"] for gid in said["hosts"][1]["rdma"][0]["gids"]])
        works = {one["transport"]: one["works"] for one in said["pairs"]}
        self.assertEqual(works, {"tcp": True, "verbs": True}, said)

    def test_the_doctor_sees_a_port_that_is_down(self):
        quiet("ip", "link", "set", ethernet(), "down")
        try:
            status, said = self.doctor()
        finally:
            quiet("ip", "link", "set", ethernet(), "up")
            restore()
        self.assertEqual(status, 1, said)
        told = [one["what"] for one in said["findings"] if one["severity"] == "error"]
        self.assertTrue(any("RDMA port rxe0:1 is DOWN" in text for text in told), said)
        self.assertEqual({one["transport"] for one in said["pairs"]}, {"tcp"}, said)

    def test_no_device(self):
        quiet("rdma", "link", "del", "rxe0")
        try:
            self.falls_back("verbs: there is no RDMA device here")
        finally:
            restore()

    def test_no_library(self):
        library = next(Path("/usr/lib").glob("*/libibverbs.so.1"))
        quiet("mount", "--bind", "/dev/null", library)
        try:
            self.falls_back(r"verbs: the transport in \S+libtutti_verbs.so cannot be used: .*libibverbs.so.1")
        finally:
            quiet("umount", library)

    def test_a_host_without_it_among_others(self):
        """All plan alike: the two others have it between them."""
        library = next(Path("/usr/lib").glob("*/libibverbs.so.1"))
        ranks = [self.start("all_reduce_perf", *SIZES, inside=inside, TUTTI_RANK=str(rank), TUTTI_SIZE="3", TUTTI_ROOT="127.0.0.1:40179",
                            TUTTI_SECRET="vm", TUTTI_HOST_ID=f"n{rank}")
                 for rank, inside in enumerate(((), (), ("unshare", "--mount", "sh", "-c", f'mount --bind /dev/null {library}; exec "$@"', "sh")))]
        said = [self.finish(job) for job in ranks]
        for status, text in said:
            self.assertEqual(status, 0, text)
        self.assertIn("verbs to rank 1", said[0][1])
        self.assertIn("tcp to rank 2", said[0][1])
        self.assertIn("Out of bounds values : 0 OK", said[0][1])

    def test_too_little_memory_may_be_locked(self):
        with readable_programs(self.BIN) as folder:
            said = run_limited(folder, 65536, *SIZES, "--ranks", "2", TUTTI_TRANSPORT="^p2p,shm", TUTTI_DEBUG="info")
        self.assertRegex(said, r"verbs does not work from rank 0 to .*cannot be registered with rxe0:1: Cannot allocate memory "
                         r"\(is the limit of locked memory high enough\? `ulimit -l` says.*trying tcp")

    def test_no_more_queue_pairs(self):
        """As many as a group of processes may have of a device's objects."""
        group = make_group("rxe0 hca_object=3")
        command = [self.BIN / "all_reduce_perf", *SIZES, "--ranks", "2", "--transport", "^p2p,shm"]
        done = subprocess.run(command, env=self.environment({}), capture_output=True, text=True, timeout=SOON,
                              preexec_fn=lambda: (group / "cgroup.procs").write_text("0"))
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertRegex(said, r"verbs does not work from rank 0 to .*(rxe0:1 gives no|cannot be registered).*trying tcp")


def make_group(limit):
    """A group of processes with a limit of what it may have of RDMA devices."""
    tree = Path("/sys/fs/cgroup")
    if not (tree / "cgroup.controllers").exists():
        quiet("mount", "-t", "cgroup2", "none", tree)
    (tree / "cgroup.subtree_control").write_text("+rdma")
    group = tree / "limited"
    group.mkdir(exist_ok=True)
    (group / "rdma.max").write_text(limit)
    return group


def restore():
    """One device, whose port is active."""
    if "rxe0" not in quiet("rdma", "link"):
        quiet("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", ethernet())
    wait_for("rxe0", lambda: re.search("rxe0/1 state ACTIVE", quiet("rdma", "link")))


class TwoWays(Case):
    """A link over two ports, of which one goes down under a job and comes back: its traffic moves, and returns, out of the
    program's memory too."""

    def test_a_port_that_goes_down_and_comes_back(self):
        quiet("bash", "-c", "set -e; ip link add dummy1 type dummy; ip link set dummy1 mtu 4200 up; "
              "ip addr add 10.79.0.1/24 dev dummy1; rdma link add rxe1 type rxe netdev dummy1")
        wait_for("rxe1", lambda: "rxe1/1 state ACTIVE" in quiet("rdma", "link"))
        job = self.start("all_reduce_perf", "-b", "256K", "-e", "256K", "-n", "40", "-w", "1", "-c", "1", "-N", "20", "--ranks", "2",
                         "--transport", "verbs", "-R", "1", TUTTI_IB_HCA="rxe0,rxe1", **BREAKS_SOON)
        wait_for("links", lambda: held("qp") >= 4)
        time.sleep(2)
        quiet("ip", "link", "set", "dummy1", "down")
        time.sleep(4)
        quiet("ip", "link", "set", "dummy1", "up")
        status, said = self.finish(job)
        quiet("rdma", "link", "del", "rxe1")
        self.assertEqual(status, 0, said)
        self.assertIn("Out of bounds values : 0 OK", said)
        self.assertRegex(said, r"rxe1:1 is broken \(.*\): what went there goes other ways")
        self.assertIn("rxe1:1 works again", said)


def make_pair():
    """Two more devices, rxa and rxb, whose packets go over a wire (a pair of veth) and not through the loopback."""
    a, b = "10.78.0.1", "10.78.0.2"
    script = f"""
set -e
ip link add va type veth peer name vb
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
for d in va vb; do
  ip link set $d mtu 4200
  sysctl -qw net.ipv4.conf.$d.accept_local=1 net.ipv4.conf.$d.rp_filter=0
  ip link set $d up
done
ip addr add {a}/24 dev va; ip addr add {b}/24 dev vb
ip neigh replace {b} lladdr $(cat /sys/class/net/vb/address) dev va nud permanent
ip neigh replace {a} lladdr $(cat /sys/class/net/va/address) dev vb nud permanent
ip rule add pref 10 iif va lookup local; ip rule add pref 11 iif vb lookup local
ip route add {b} dev va src {a} table 101; ip route add {a} dev vb src {b} table 102
ip rule add pref 20 from {a} to {b} lookup 101; ip rule add pref 21 from {b} to {a} lookup 102
ip rule add pref 100 lookup local; ip rule del pref 0
rdma link add rxa type rxe netdev va; rdma link add rxb type rxe netdev vb
"""
    quiet("bash", "-c", script)
    wait_for("rxa and rxb", lambda: len(re.findall("rx[ab]/1 state ACTIVE", quiet("rdma", "link"))) == 2)


class TwoDevices(Case):
    """Two devices as two hosts have them; two ways between two ranks."""

    @classmethod
    def setUpClass(cls):
        make_pair()

    def ranks(self, program, devices, *words, **variables):
        """A rank for each device's name."""
        return [self.start(program, *words, TUTTI_RANK=str(rank), TUTTI_SIZE=str(len(devices)), TUTTI_ROOT="127.0.0.1:40179",
                           TUTTI_SECRET="vm", TUTTI_HOST_ID=f"n{rank}", TUTTI_IB_HCA=device, **variables)
                for rank, device in enumerate(devices)]

    def test_all_collectives_between_them(self):
        programs = ["all_reduce_perf"] if self.QUICK else sorted(one.name for one in self.BIN.glob("*_perf"))
        for program in programs:
            for job in self.ranks(program, ("=rxa", "=rxb"), *SIZES, TUTTI_TRANSPORT="verbs"):
                status, said = self.finish(job)
                self.assertEqual(status, 0, f"{program}\n{said}")
                if "Out of bounds" in said:
                    self.assertIn("Out of bounds values : 0 OK", said)

    def test_ports_that_do_not_reach_each_other(self):
        """rxe0's wire ends nowhere."""
        for job in self.ranks("all_reduce_perf", ("=rxe0", "=rxb"), *SIZES, TUTTI_TRANSPORT="verbs,tcp", **BREAKS_SOON):
            status, said = self.finish(job)
            self.assertEqual(status, 0, said)
            self.assertIn("tcp to rank", said)
        for job in self.ranks("all_reduce_perf", ("=rxe0", "=rxb"), *SIZES, TUTTI_TRANSPORT="verbs", **BREAKS_SOON,
                              TUTTI_CONNECT_TIMEOUT_MS="15000"):
            status, said = self.finish(job)
            self.assertNotEqual(status, 0)
            self.assertRegex(said, "verbs: .*(does not answer|took too long|the peer)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="where the programs are")
    parser.add_argument("--quick", action="store_true", help="fewer programs and slots")
    known, cases = parser.parse_known_args()
    Case.BIN, Case.QUICK = Path(known.bin or ".").resolve(), known.quick
    for node in Path("/dev/infiniband").iterdir():
        node.chmod(0o666)
    restore()
    unittest.main(argv=[sys.argv[0], "-v", *cases])


if __name__ == "__main__":
    main()
