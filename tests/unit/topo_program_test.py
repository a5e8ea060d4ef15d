"""tutti-topo as a program: what it prints of files and known systems, and how it ends with what it cannot read."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BIN = os.environ["TUTTI_BIN_DIR"]


def run(*arguments):
    done = subprocess.run([f"{BIN}/tutti-topo", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text):
        path = pathlib.Path(self.folder.name, "system.xml")
        path.write_text(text, encoding="utf-8")
        return str(path)

    def expect_trouble(self, part, *arguments):
        code, output, errors = run(*arguments)
        self.assertEqual((code, output), (2, ""), errors)
        self.assertTrue(errors.startswith("tutti-topo: "), errors)
        self.assertIn(part, errors)

    def test_a_known_system(self):
        code, output, errors = run("show", "--system", "azure-ndv4")
        self.assertEqual((code, errors), (0, ""))
        lines = output.splitlines()
        first = next(i for i, line in enumerate(lines) if "ffff:ff:01.0" in line)
        self.assertIn("NUMA 0", lines[first - 1])
        self.assertIn("GPU 2  0003:00:00.0", lines[first + 1])
        self.assertIn("GPU 3  0004:00:00.0", lines[first + 2])
        matrix = next(line.split() for line in lines if line.startswith("G2 "))
        self.assertEqual(matrix, ["G2", "GPU", "2", "NVL", "NVL", "-", *["NVL"] * 5, "PXN", "PXN", "PIX", "PIX",
                                  *["PXN"] * 4])

    def test_its_file(self):
        code, made, errors = run("make", "ibm-hgx-h100")
        self.assertEqual((code, errors.count("tutti-topo: remark: ")), (0, 16))  # of 16 widths
        path = self.file(made)
        shown = run("show", path)
        self.assertEqual(shown[0], 0)
        self.assertEqual(shown, run("show", "--system", "ibm-hgx-h100"))
        self.assertEqual(shown[1].count("warning: "), 1)
        self.assertEqual(run("show", path, "--format", "xml"), (0, made, errors))

    def test_json(self):
        code, output, _ = run("show", "--system", "aws-p5", "--format", "json")
        said = json.loads(output)
        self.assertEqual(code, 0)
        self.assertEqual(sum(device["kind"] == "gpu" for device in said["devices"]), 8)
        self.assertEqual(len(said["paths"]), 40 * 39 // 2)
        self.assertEqual(said["warnings"], [])

    def picture(self, *arguments):
        code, output, errors = run("show", *arguments, "--format", "svg")
        self.assertEqual((code, errors), (0, ""))
        root = xml.etree.ElementTree.fromstring(output)
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_pictures(self):
        texts = self.picture("--system", "hgx-h100")
        self.assertIn("hgx-h100", texts)
        self.assertIn("ring of 370.8 GB/s: GPU 0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0: 8 NVL, 370.8 GB/s at the narrowest", texts)
        texts = self.picture(self.file(run("make", "aws-p5")[1]))
        self.assertEqual((texts[0], texts.count("PCI 12 GB/s")), ("system.xml", 32))
        self.assertIn("this machine", self.picture())

    def test_the_machine_at_hand(self):
        code, output, errors = run("show")
        self.assertEqual((code, errors), (0, ""))
        self.assertTrue(output.startswith("NUMA "), output)
        code, made, _ = run("show", "--format", "xml")
        self.assertEqual((code, made.split(">")[0]), (0, '<system version="1"'))
        again = run("show", self.file(made))[1]
        self.assertEqual(again.split("\n\n")[0], output.split("\n\n")[0])
        self.assertIn('"kind": "numa"', run("show", "--format", "json")[1])

    def test_files_of_hwloc(self):
        for arguments in ([], ["--system", "dgx-a100"]):
            code, made, _ = run("show", *arguments, "--format", "hwloc")
            self.assertEqual(code, 0)
            self.assertIn('<topology version="2.0">', made)
            code, output, errors = run("show", self.file(made))
            self.assertEqual((code, errors), (0, ""))
        self.assertIn("GPU 7", output)
        self.assertIn("remark: hwloc tells no NVLinks: those of its 8 GPUs are unknown", output)

    def test_a_file_that_is_completed(self):
        partial = self.file('<system version="1"><cpu numaid="0"><pci busid="0777:00:00.0" class="0x030200"/></cpu></system>')
        code, output, errors = run("show", partial, "--complete")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("remark: in the file, but not found on this machine: GPU 0777:00:00.0", output)
        self.assertIn("cores ", output)
        self.assertEqual(run("show", partial, "--complete", "--format", "xml")[0], 0)
        hosts = '<system version="1"><cpu numaid="0" host_hash="1"/><cpu numaid="0" host_hash="2"/></system>'
        self.expect_trouble("several hosts", "show", self.file(hosts), "--complete")

    def test_files_that_are_none(self):
        self.expect_trouble("no XML at line 1", "show", self.file("<system><cpu>"))
        self.expect_trouble("DOCTYPE", "show", self.file("<!DOCTYPE system><system/>"))
        self.expect_trouble("begins with <graphs>", "show", self.file("<graphs/>"))
        self.expect_trouble("is unknown: write it as version 2", "show", self.file('<topology version="3.0"/>'))
        self.expect_trouble("cannot be read", "show", "/nowhere/system.xml")
        self.expect_trouble("cannot be read", "show", self.folder.name)

    def test_what_is_odd_in_a_file_is_told(self):
        node = '<system version="1"><cpu numaid="0" affinity="{}" arch="x86_64" vendor="GenuineIntel">{}</cpu></system>'
        for affinity in ("nan", "-5", "0xff", "123456789", "ff ff"):
            code, output, errors = run("show", self.file(node.format(affinity, "")))
            self.assertEqual((code, errors), (0, ""))
            self.assertIn(f'remark: <cpu numaid="0">: affinity="{affinity}" is no set of cores', output)
            self.assertNotIn("cores " + affinity, output)
        self.assertNotIn("no set of cores", run("show", self.file(node.format("0000ffff,ffff0000", "")))[1])

        gpu = '<pci busid="0000:0{}:00.0" class="0x030200"><gpu dev="{}" sm="90"/></pci>'
        nic = '<pci busid="0000:0{}:00.0" class="0x020700"><nic><net name="{}" port="1"/><net name="{}" port="2"/></nic></pci>'
        alike = gpu.format(1, 0) + gpu.format(2, 0) + nic.format(3, "mlx5_0", "mlx5_1") + nic.format(4, "mlx5_1", "mlx5_2")
        output = run("show", self.file(node.format("ff", alike)))[1]
        self.assertIn("warning: 2 devices are called GPU 0: 0000:01:00.0, 0000:02:00.0. Give each a number", output)
        self.assertIn("warning: 2 devices are called mlx5_1: 0000:03:00.0, 0000:04:00.0. Give each a name", output)
        fine = gpu.format(1, 0) + gpu.format(2, 1) + gpu.format(5, -1) + gpu.format(6, -1) + nic.format(3, "mlx5_0", "mlx5_0")
        self.assertNotIn("are called", run("show", self.file(node.format("ff", fine)))[1])

    def test_names_that_are_none(self):
        for arguments in (["show", "--system", "dgx-2"], ["make", "dgx-2"]):
            self.expect_trouble("no system is known as \"dgx-2\": name one of dgx-a100, hgx-h100", *arguments)

    def test_calls_that_are_wrong(self):
        self.expect_trouble("Try --help", "show", "--complete")
        self.expect_trouble("Try --help", "make")
        self.expect_trouble("Try --help", "show", "file.xml", "--system", "dgx-a100")
        self.expect_trouble("Try --help", "show", "--system", "dgx-a100", "--format", "png")
        self.expect_trouble("Try --help")

    def test_help_tells_all(self):
        code, output, _ = run("--help")
        self.assertEqual(code, 0)
        for part in ("show", "make", "azure-ndv4", "ethernet-host"):
            self.assertIn(part, output)
        for part in ("--system", "--complete", "--format", "hwloc"):
            self.assertIn(part, run("show", "--help")[1])


if __name__ == "__main__":
    sys.exit(unittest.main())
