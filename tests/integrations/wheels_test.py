"""Wheels for other machines: what auditwheel makes of the packages holds all that is not the system's, and runs from a folder.

    wheels_test.py ROOT HOME, where HOME is the environment's folder with what was built of the packages
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jobs

ROOT, HOME = (Path(sys.argv.pop(1)) for _ in range(2))
PLATFORM = "manylinux_2_35_x86_64"  # of the C library that this distribution has
OWN = ("libtutti", "libhwloc", "libsodium", "libpugixml")
PROGRAM = """
import numpy, tutti
with tutti.init() as comm:
    x = numpy.full(5, float(comm.rank + 1))
    comm.all_reduce(x)
    assert (x == 3).all(), x
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/lib" in line}
for name in %r:
    places = [path for path in mapped if f"/{name}" in path]
    assert places and all(path.startswith(%r) for path in places), (name, places)
print("from the wheel")
"""


class Wheels(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_well(self, *command, **environment):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env=jobs.clean_environment(**environment))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def wheel_of(self, package, module, *excluded):
        self.run_well(sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-build-isolation",
                      "--no-deps", "-C", f"build-dir={HOME / 'build' / module}", "-w", self.folder, ROOT / "integrations" / package)
        [made] = self.folder.glob("*.whl")
        self.run_well(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "-w", self.folder / "repaired", made,
                      *[word for name in excluded for word in ("--exclude", name)])
        [repaired] = (self.folder / "repaired").glob("*.whl")
        self.assertIn(PLATFORM, repaired.name)
        return repaired

    def unpacked(self, wheel):
        place = self.folder / "unpacked"
        self.run_well(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", place,
                      wheel)
        held = [path.name for path in place.rglob("*.so*")]
        for name in OWN:
            self.assertTrue(any(found.startswith(name) for found in held), f"{name} is not in {held}")
        return place

    def test_of_tutti(self):
        place = self.unpacked(self.wheel_of("python", "tutti"))
        program = self.folder / "program.py"
        program.write_text(PROGRAM % (OWN, str(place)), encoding="utf-8")
        said = self.run_well(sys.executable, "-m", "tutti.run", "-n", "2", program, PYTHONPATH=str(place))
        self.assertEqual(said.count("from the wheel"), 2, said)

    def test_of_tutti_torch(self):
        place = self.unpacked(self.wheel_of("torch", "tutti_torch", "libtorch*", "libc10*"))
        said = self.run_well(sys.executable, "-c", "import tutti_torch; print(tutti_torch.__file__)", PYTHONPATH=str(place))
        self.assertIn(str(place), said)


if __name__ == "__main__":
    jobs.main()
