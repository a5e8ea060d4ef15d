"""tutti-topo plan as a program: the choice and its reasons as text and JSON, what is measured here, and bad questions."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["TUTTI_BIN_DIR"]


def run(*arguments):
    done = subprocess.run([f"{BIN}/tutti-topo", "plan", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr


class Plan(unittest.TestCase):
    def said(self, *arguments):
        code, output, errors = run(*arguments)
        self.assertEqual(code, 0, errors)
        return output

    def test_text(self):
        text = self.said("--system", "hgx-h100", "--nodes", "2", "--size", "64M")
        lines = text.splitlines()
        self.assertEqual(lines[0], "all-reduce of 64M among 16 ranks (hgx-h100, nodes: 2 of 8 GPUs)")
        chosen = [line for line in lines if line.startswith("> ")]
        self.assertEqual(len(chosen), 1)
        self.assertEqual(chosen[0].split()[1:3], ["hierarchical", "simple"])
        candidates = lines[3:lines.index("", 3)]
        self.assertEqual(len(candidates), 24)  # eight algorithms by three protocols
        times = [float(line.split()[-2]) for line in candidates]
        self.assertEqual(times, sorted(times))
        self.assertIn("Rings that a node's links carry: 8 of 48.0 GB/s, neighbours NVL, NICs PIX", lines)
        self.assertIn("not faster: RDMA", text)

    def test_json(self):
        said = json.loads(self.said("--system", "azure-ndv4", "--op", "all_gather", "--size", "1G", "--format", "json"))
        self.assertEqual((said["operation"], said["bytes"], said["ranks"]), ("all_gather", 1 << 30, 8))
        times = [said["choice"]["predicted_us"], *(one["predicted_us"] for one in said["others"])]
        self.assertEqual(times, sorted(times))
        self.assertGreater(len(times), 3)
        self.assertEqual(said["links"][0]["over"], "p2p: kernels store over NVLink (NVL)")
        self.assertIn("hierarchical: all ranks are on one host", said["left_out"])

    def test_a_sweep(self):
        lines = self.said("--system", "aws-p4d", "--nodes", "16", "--size", "1G", "--sweep").splitlines()
        sizes = [line.split()[0] for line in lines[3:]]
        self.assertEqual(sizes, ["1K", "8K", "64K", "512K", "4M", "32M", "256M", "1G"])

    def test_what_is_asked_for_is_taken(self):
        said = json.loads(self.said("--system", "hgx-h100", "--algo", "tree", "--protocol", "ll", "--channels", "3",
                                    "--format", "json"))
        choice = said["choice"]
        self.assertEqual((choice["algorithm"], choice["protocol"], choice["channels"]), ("tree", "ll", 3))
        self.assertEqual(said["others"], [])

    def test_a_file(self):
        made = subprocess.run([f"{BIN}/tutti-topo", "make", "aws-p4d"], capture_output=True, text=True, check=True)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "aws-p4d")
            path.write_text(made.stdout, encoding="utf-8")
            self.assertEqual(self.said(str(path), "--nodes", "2"), self.said("--system", "aws-p4d", "--nodes", "2"))

    def test_on_cores_links_count(self):
        said = json.loads(self.said("--system", "azure-hc", "--nodes", "2", "--ranks-per-node", "8", "--format", "json"))
        self.assertGreater(said["choice"]["links_us"], 0)
        between = said["links"][1]
        self.assertLess(between["gb_per_s"], 12)  # what TCP carries, not what the NIC could
        self.assertNotIn("what the NICs carry", between["not_faster"])

    def test_an_algorithm_that_is_not_there_is_told(self):
        said = json.loads(self.said("--system", "hgx-h100", "--op", "alltoall", "--algo", "tree,ring", "--format", "json"))
        self.assertIn("ring,tree: all-to-all has no such algorithm, so that all that it has were weighed", said["left_out"])

    def test_measured_here(self):
        said = json.loads(self.said("--ranks-per-node", "2", "--size", "4K", "--transport", "p2p", "--measure",
                                    "--format", "json"))
        self.assertGreater(said["choice"]["measured_us"], 0)
        self.assertTrue(all("measured_us" in one for one in said["others"]))

    def test_questions_that_are_none(self):
        for arguments, part in [
                (["--system", "hgx-h100", "--op", "all_add"], "'all_add' is no operation; choose one of: all_reduce"),
                (["--system", "hgx-h100", "--size", "much"], "invalid size 'much'"),
                (["--system", "hgx-h100", "--size", "0"], "invalid size '0'"),
                (["--system", "hgx-h100", "--algo", "best"], "best"),
                (["--system", "hgx-h100", "--protocol", "ll64"], "choose one of: simple, ll, ll128"),
                (["--system", "hgx-h100", "--op", "alltoall", "--algo", "tree"], "all-to-all has no algorithm tree"),
                (["--system", "hgx-h100", "--ranks-per-node", "9"], "there is no place for 9 ranks"),
                (["--system", "hgx-h100", "--ranks-per-node", "1"], "one rank alone sends nothing"),
                (["--system", "hgx-h100", "--measure"], "--measure is for ranks on this machine"),
                (["--system", "hgx-h100", "--sweep", "--format", "json"], "--sweep is a table"),
                (["--system", "azure-hc", "--transport", "pigeons"], "choose p2p, shm or tcp"),
                (["--system", "azure-hc", "--profile", "/nowhere"], "/nowhere"),
                (["--nodes", "0"], "Try --help"),
                (["--nodes", "many"], "Try --help")]:
            code, output, errors = run(*arguments)
            self.assertEqual((code, output), (2, ""), (arguments, errors))
            self.assertIn(part, errors)


if __name__ == "__main__":
    sys.exit(unittest.main())
