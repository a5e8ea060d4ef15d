#!/usr/bin/env python3
"""A transport that does not work is no end of a job: the next one takes its place, on all ranks alike, and the log says why, in words
to act on. Where nothing else is allowed the job ends with the same words. What needs an RDMA device is in tests/vm.

    tests/conformance/fallback_test.py --bin build/release/bin
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.refusing import refuse  # noqa: E402

PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
ROOT = Path(__file__).resolve().parent.parent.parent
JOB = ["-b", "8", "-e", "256K", "-f", "32", "-n", "3", "-w", "1", "-c", "1", "--ranks", "2"]


class Fallback(unittest.TestCase):
    BIN = Path(".")
    PLUGIN = Path("trouble.so")

    def all_reduce(self, *words, before=None, **variables):
        done = subprocess.run([self.BIN / "all_reduce_perf", *JOB, *words], capture_output=True, text=True,
                              env={**os.environ, "TUTTI_DEBUG": "info", **variables}, preexec_fn=before, timeout=120 * PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def goes_on(self, by, *texts, words=(), **more):
        status, said = self.all_reduce(*words, **more)
        self.assertEqual(status, 0, said)
        self.assertIn("Out of bounds values : 0 OK", said)
        links = re.findall(r"info: (\w+) to rank \d \(", said)
        self.assertTrue(links and set(links) == {by}, f"{links}\n{said}")
        for text in texts:
            self.assertRegex(said, text)

    def ends(self, *texts, words=(), **more):
        status, said = self.all_reduce(*words, **more)
        self.assertNotEqual(status, 0, said)
        for text in texts:
            self.assertRegex(said, text)

    def trouble(self, kind, why, **more):
        """The plugin is the first choice, and TCP takes its place."""
        variables = {"TUTTI_TRANSPORT_PLUGINS": str(self.PLUGIN), "TROUBLE": kind, **more}
        self.goes_on("tcp", why, words=("--transport", "trouble,tcp"), **variables)
        self.ends(why, words=("--transport", "trouble"), **variables)

    def test_without_trouble_it_is_taken(self):
        self.goes_on("trouble", words=("--transport", "trouble,tcp"), TUTTI_TRANSPORT_PLUGINS=str(self.PLUGIN))

    def test_no_device(self):
        if Path("/sys/class/infiniband").exists() and list(Path("/sys/class/infiniband").iterdir()):
            self.skipTest("this machine has RDMA")
        why = "verbs: there is no RDMA device here"
        self.goes_on("tcp", f"not {why}", words=("--transport", "verbs,tcp"))
        self.ends(why, words=("--transport", "verbs"))

    def test_one_rank_alone_lacks_it(self):
        self.trouble("lack", r"trouble: its network is not plugged in \(process \d+ on host \S+\)", TROUBLE_RANK="1")

    def test_all_ranks_lack_it(self):
        self.trouble("lack", r"trouble: its network is not plugged in(?! \()")

    def test_it_cannot_be_opened(self):
        self.trouble("open", "no room for another link")

    def test_it_is_refused_half_way(self):
        self.trouble("refuse", r"trouble.*: the example's link to rank \d was refused: Connection refused")

    def test_it_is_refused_at_one_end(self):
        self.trouble("refuse", r"trouble.*: at the peer: the example's link to rank 0 was refused", TROUBLE_RANK="1")

    def test_it_stalls(self):
        self.trouble("stall", r"trouble.*: took too long, still connecting|trouble: still connecting",
                     TUTTI_CONNECT_TIMEOUT_MS=str(2000 * PATIENCE))

    def test_it_says_too_much(self):
        self.trouble("chatter", r"trouble.*: (at the peer: )?it says more to its other end than a set-up takes")
        self.trouble("chatter", r"trouble.*[:;] at the peer: it says more to its other end than a set-up takes", TROUBLE_RANK="1")

    def test_the_self_test_fails(self):
        self.trouble("garble", r"trouble.*: self-test: the \d+ bytes of slot \d+ did not arrive as they were sent")

    def test_it_is_cut_under_the_self_test(self):
        self.trouble("lose", r"trouble.*: (at the peer: )?the example's link to rank \d was cut")

    def test_memory_files_are_refused(self):
        """By seccomp, as in tight containers: shared memory is made of them."""
        words = [word for word in JOB if word not in ("--ranks", "2")]
        place = {"TUTTI_SIZE": "2", "TUTTI_DEBUG": "info", "TUTTI_ROOT": "127.0.0.1:40183", "TUTTI_SECRET": os.urandom(16).hex()}
        for transports in ("shm,tcp", "shm"):
            ranks = [subprocess.Popen([self.BIN / "all_reduce_perf", *words, "--transport", transports], stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.STDOUT, env={**os.environ, **place, "TUTTI_RANK": str(rank)},
                                      preexec_fn=lambda: refuse("memfd_create")) for rank in range(2)]
            said = "".join(rank.communicate(timeout=120 * PATIENCE)[0] for rank in ranks)
            self.assertRegex(said, r"shm.*Operation not permitted")
            self.assertEqual([rank.returncode == 0 for rank in ranks], [transports != "shm"] * 2, said)
            self.assertEqual("tcp to rank 1" in said, transports != "shm", said)

    def test_no_unix_sockets(self):
        self.goes_on("tcp", r"not shm: TUTTI_UNIX_SOCKETS=0", TUTTI_UNIX_SOCKETS="0")

    def test_sockets_of_different_namespaces(self):
        """Two ranks that are told to be one host, and do not reach each other's Unix sockets."""
        if not shutil.which("ip") or not shutil.which("nsenter"):
            self.skipTest("ip (iproute2) or nsenter (util-linux) is not installed")
        if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
            self.skipTest("network namespaces need root")
        script = """
set -e
ip link add ta type veth peer name tb
trap 'ip link del ta 2> /dev/null || true' EXIT  # it goes with the other namespace, too
unshare --net sleep 300 & there=$!
sleep 0.3; ip link set tb netns $there
in_there() { nsenter --net=/proc/$there/ns/net "$@"; }
ip addr add 10.99.7.1/24 dev ta; ip link set ta up
in_there ip addr add 10.99.7.2/24 dev tb; in_there ip link set tb up; in_there ip link set lo up
export TUTTI_SIZE=2 TUTTI_ROOT=10.99.7.1:40181 TUTTI_HOST_ID=one TUTTI_SECRET=$RANDOM$RANDOM$RANDOM$RANDOM
TUTTI_RANK=0 "$@" & first=$!
second=0; TUTTI_RANK=1 in_there "$@" || second=$?
wait $first || second=$?
kill $there; exit $second
"""
        words = [word for word in JOB if word not in ("--ranks", "2")]
        done = subprocess.run(["bash", "-c", script, "bash", self.BIN / "all_reduce_perf", *words], capture_output=True, text=True,
                              env={**os.environ, "TUTTI_DEBUG": "info"}, timeout=120 * PATIENCE)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("Out of bounds values : 0 OK", said)
        self.assertRegex(said, "shm does not work from rank 0 to .*trying tcp")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    known, rest = parser.parse_known_args()
    Fallback.BIN = Path(known.bin or ".").resolve()
    if not (Fallback.BIN / "all_reduce_perf").exists():
        parser.error(f"--bin: there is no {Fallback.BIN / 'all_reduce_perf'}")
    with tempfile.TemporaryDirectory() as folder:
        Fallback.PLUGIN = Path(folder) / "trouble.so"
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-shared", "-fPIC", f"-I{ROOT / 'include'}",
                        ROOT / "tests/conformance/trouble.c", "-o", Fallback.PLUGIN], check=True)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
