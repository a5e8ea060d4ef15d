"""tools/lib/skips must name every skipped test once, with what the test said."""
import os
import subprocess
import sys
import tempfile
import unittest

SKIPS = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "lib", "skips")

GTEST = """<testsuites><testsuite name="Numa">
  <testcase name="OneNode" status="run" result="completed" classname="Numa" />
  <testcase name="TwoNodes" status="run" result="skipped" classname="Numa">
    <skipped message="numa_test.cc:12&#x0A;needs two NUMA nodes"><![CDATA[numa_test.cc:12]]></skipped>
  </testcase>
</testsuite></testsuites>"""

CTEST = """<testsuite name="ctest">
  <testcase name="unit.Numa" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>x</system-out></testcase>
  <testcase name="multihost.join" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>starting
needs root
</system-out></testcase>
  <testcase name="unit.Other" status="run"><system-out>fine</system-out></testcase>
</testsuite>"""


def run_on(reports):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in reports.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        return subprocess.run([sys.executable, SKIPS, folder], capture_output=True, text=True, check=True).stdout


class Skips(unittest.TestCase):
    def test_names_tests_and_reasons(self):
        output = run_on({"unit.Numa.xml": GTEST, "ctest.xml": CTEST})
        self.assertIn("needs two NUMA nodes\n    Numa.TwoNodes\n", output)
        self.assertIn("needs root\n    multihost.join\n", output)
        self.assertTrue(output.endswith("2 skipped\n"), output)

    def test_says_when_there_are_none(self):
        self.assertEqual(run_on({}), "0 skipped\n")


if __name__ == "__main__":
    unittest.main()
