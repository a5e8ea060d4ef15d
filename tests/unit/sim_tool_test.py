"""What tutti-sim says, of good and of bad arguments."""
import os
import re
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BIN = os.environ["TUTTI_BIN_DIR"]


H100 = ("--system", "hgx-h100")


def run(*arguments, node=H100):
    return subprocess.run([os.path.join(BIN, "tutti-sim"), *node, *arguments], capture_output=True, text=True, check=False,
                          timeout=300)


class Tool(unittest.TestCase):
    def answer(self, *arguments, node=H100):
        done = run(*arguments, node=node)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def refusal(self, text, *arguments, node=H100):
        done = run(*arguments, node=node)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_table_with_the_best_first(self):
        text = self.answer("--nodes", "4", "--size", "16M")
        rows = re.findall(r"(?m)^ +16M  (\S+) +([\d.]+) ", text)
        self.assertIn("ring", [name for name, _ in rows])
        times = [float(time) for _, time in rows]
        self.assertEqual(times, sorted(times))
        self.assertIn(f"Best for 16M: {rows[0][0]}, {rows[0][1]} us;", text)
        self.assertIn("p: before the run, the schedules of all ranks were proved", text)

    def test_it_says_what_it_left_out(self):
        text = self.answer("--nodes", "32", "--size", "2G", "--ranks-per-node", "8",
                           node=("--system", "ethernet-host"))
        self.assertIn("c: nothing was run", text)
        self.assertIn("h: one host was run", text)
        self.assertIn("x: a part of the message's rounds was run", text)
        self.assertIn("Left out: hierarchical: ", self.answer("--nodes", "1"))

    def test_what_is_not_proved_is_said(self):
        text = self.answer("--nodes", "128", "--size", "1M", "--algo", "ring")
        self.assertNotIn("\np: ", text)
        self.assertIn("Without p: not proved before the run", text)
        self.assertNotIn("Without p", self.answer("--nodes", "2"))

    def test_65536_ranks(self):
        for algo, mark in (("hierarchical", "h"), ("ring", "c")):
            text = self.answer("--nodes", "8192", "--size", "1G", "--algo", algo)
            self.assertRegex(text, rf"(?m)^ +1G  {algo} .* {mark} ")
            self.assertIn("The library's communicators have up to 16384 ranks", text)

    def test_figures_are_those_of_the_system(self):
        text = self.answer("--nodes", "2", "--algo", "ring", node=("--system", "aws-p4d"))
        self.assertIn("ranks: 16 (nodes of aws-p4d: 2 of 8)", text)
        self.assertIn("NICs of a node   4 of 12.0 GB/s", text)
        self.assertIn("rdmap", text)

    def test_an_operation_that_all_algorithms_do_badly(self):
        self.assertIn("direct", self.answer("--op", "alltoall", "--nodes", "20"))

    def test_the_same_twice(self):
        self.assertEqual(self.answer("--nodes", "2"), self.answer("--nodes", "2"))

    def test_a_sweep(self):
        text = self.answer("--algo", "ring", "--sweep", "--size", "64K")
        self.assertEqual(re.findall(r"(?m)^ +(\w+)  ring", text), ["1K", "8K", "64K"])

    def test_a_plot(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "plot.svg")
            self.answer("--nodes", "2", "--sweep", "--size", "64K", "--plot", str(file))
            root = xml.etree.ElementTree.fromstring(file.read_text(encoding="utf-8"))
            texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
            self.assertIn("all-reduce, 16 ranks, nodes of hgx-h100: 2", texts)
            self.assertIn("ring", texts)
            done = run("--plot", folder + "/none/plot.svg")
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot write the plot to", done.stderr)
            self.assertIn("No such file or directory", done.stderr)
            self.assertEqual(done.stdout, "")  # it is said before anything is run
            self.refusal("cannot write the plot to ''", "--plot", "")
            self.refusal("Is a directory", "--plot", folder)
            self.refusal("root 8 is not one of 8 ranks", "--op", "broadcast", "--root", "8", "--plot", folder + "/never.svg")
            self.assertEqual(os.listdir(folder), ["plot.svg"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk(self):
        done = run("--nodes", "2", "--plot", "/dev/full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot write the plot to '/dev/full': No space left on device", done.stderr)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([os.path.join(BIN, "tutti-sim"), *H100], stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot write to standard output", done.stderr)

    def test_a_comparison_leaves_out_what_takes_long(self):
        text = self.answer("--nodes", "2048", "--channels", "8", "--size", "1G", "--op", "all_gather")
        self.assertRegex(text, r"(?m)^ +1G  ring ")
        self.assertRegex(text, r"(?m)^Left out of 1G: halving: .* million are the most")
        self.assertIn("may still do by itself, with --algo", text)

    def test_a_time_beyond_patience(self):
        self.refusal("takes about", "--nodes", "8192", "--size", "1G", "--algo", "tree",
                     "--channels", "64")
        self.refusal("the schedules of all-to-all for 8192 ranks take more than 1024 MB", "--op", "alltoall", "--nodes",
                     "1024")
        self.refusal("which a schedule has no room for beyond 16384 ranks", "--op", "alltoall", "--nodes", "8192")
        self.refusal("a schedule has no room for a span of 524288; simulate fewer nodes", "--nodes", "131072", "--algo",
                     "halving")
        self.refusal("beyond 16384 ranks; simulate fewer nodes", "--op", "reduce", "--nodes", "8192", "--algo", "hierarchical")

    def file(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "node.xml")
        path.write_text(text, encoding="utf-8")
        return str(path)

    def file_of(self, name, form="xml"):
        done = subprocess.run([os.path.join(BIN, "tutti-topo"), "show", "--system", name, "--format", form],
                              capture_output=True, text=True, check=True)
        return self.file(done.stdout)

    def test_a_file_gives_what_its_system_gives(self):
        for name in ("hgx-h100", "aws-p5", "azure-hbv3", "pcie-box"):
            known = self.answer("--nodes", "4", "--size", "1M", "--sweep", node=("--system", name))
            of_file = self.answer("--nodes", "4", "--size", "1M", "--sweep", node=("--input", self.file_of(name)))
            self.assertEqual(of_file.replace("node.xml", name), known)

    def test_a_file_of_hwloc(self):
        done = run("--nodes", "4", node=("--input", self.file_of("azure-hbv3", "hwloc")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ranks: 16 (nodes of node.xml: 4 of 4)", done.stdout)
        self.assertIn("mlx5_ib0: no network speed; 10000 Mbit/s is assumed", done.stderr)
        self.assertIn("NICs of a node   1 of 1.2 GB/s", done.stdout)

    def test_the_machine_at_hand(self):
        done = run("--ranks-per-node", "2", "--size", "1M", node=())
        if "neither GPUs nor" not in done.stderr and "has 1 GPUs" not in done.stderr:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("(nodes of this machine: 1 of 2)", done.stdout)
        self.assertRegex(done.stderr, r"\A(tutti-sim: .*\n)*\Z")

    def test_files_that_are_no_node(self):
        core = '<cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"{}>{}</cpu>'

        def refused(text, content, *arguments):
            done = run(*arguments, node=("--input", self.file(f'<system version="1">{content}</system>')))
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(text, done.stderr)

        refused("node.xml has neither GPUs nor memory nodes with cores", "")
        refused("node.xml has neither GPUs nor memory nodes with cores", core.format("", "").replace('"ff"', '"0"'))
        refused("node.xml has no NIC: give one node (--nodes 1)", core.format("", ""), "--nodes", "2")
        refused("one rank alone has nothing to send", core.format("", ""))
        alone = self.answer("--ranks-per-node", "2", node=("--input", self.file(f'<system version="1">{core.format("", "")}</system>')))
        self.assertIn("  NICs of a node   none\n", alone)
        cloud = '<pci busid="0101:00:00.0" class="0x020700"/><pci busid="0001:00:00.0" class="0x030200"/>'
        refused("node.xml has NICs, but says nothing of their networks (<net>)", core.format("", cloud), "--nodes", "2")
        refused("node.xml has neither GPUs nor memory nodes with cores",
                core.format("", "").replace('"ff"', '"0"') + core.format("", "").replace('"0"', '"1"').replace('"ff"', '"0,0"'))
        refused("node.xml describes several hosts: give one of them",
                core.format(' host_hash="1"', "") + core.format(' host_hash="2"', ""))
        gpu = '<pci busid="0000:01:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0" sm="80"/></pci>'
        refused("node.xml has 1 GPUs, one for each rank: there is no place for 2 ranks", core.format("", gpu),
                "--ranks-per-node", "2")
        refused("two devices have the bus id", core.format("", gpu + gpu))
        nic = '<nic><net name="eth0" dev="0" speed="0"/></nic>'
        refused("eth0: no network speed; 10000 Mbit/s is assumed", core.format("", nic))
        self.refusal("no XML at line 1", node=("--input", self.file("<system><cpu>")))
        self.refusal("cannot be read", node=("--input", "/nowhere/node.xml"))
        self.refusal("Try --help", node=("--input", "node.xml", *H100))

    def test_bad_arguments(self):
        self.refusal('no system is known as "cray": name one of dgx-a100', node=("--system", "cray"))
        self.refusal("hgx-h100 has 8 GPUs, one for each rank", "--ranks-per-node", "9")
        self.refusal("'sum' is no operation; choose one of: all_reduce", "--op", "sum")
        self.refusal("'best' is no algorithm; choose one of: ring", "--algo", "best")
        self.refusal("broadcast has no algorithm bruck; choose one of: ", "--op", "broadcast", "--algo", "bruck")
        self.refusal("is not one of 8 ranks", "--op", "broadcast", "--root", "8")
        for size in ("much", "0", "-1", "1T", "1e30", "nan", "inf", "1GG"):
            self.refusal(f"invalid size '{size}'", f"--size={size}")
        for nodes in ("0", "-1", "131073"):
            self.refusal("hosts of 8 ranks are no cluster: 1 to 1048576 ranks can be simulated", f"--nodes={nodes}")
        for nodes in ("99999999999", "1.5", "many"):
            self.refusal(f"Could not convert: --nodes = {nodes}", "--nodes", nodes)
        for channels in ("0", "65"):
            self.refusal("not in range 1 to 64", "--channels", channels)
        self.refusal("one rank alone has nothing to send", "--ranks-per-node", "1", "--algo", "ring")
        self.refusal("--what", "--what")


if __name__ == "__main__":
    sys.exit(unittest.main())
