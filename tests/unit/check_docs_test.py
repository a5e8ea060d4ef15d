"""tools/check-docs and tests/install/readme_test.py must see each kind of untruth in a small tree that has one of each, and
none in a true one; and a program of tests must not pass when it was asked for a test that it has not got."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
void f() {
  // "a text in a comment"
  fail(fmt::format("{} did not come within {} ms: "
                   "look at its host", name(rank), ms));
  say(fmt::format("{} (host {}, pid {})", rank, host, pid));
  say(fmt::format("{} {}", agree(ranks, "rank", "ranks"), list));
}
"""

TRUE = """# A document

It says `rank 3 (host n2, pid 4) did not come within 20 ms: look`, or `rank 3 (...) did not come within 5 ms`, where
`TUTTI_WAIT_MS` is set; `-DTUTTI_CUDA=OFF` and [another](docs/other.md). See `src/a.cc`, `a.cc`, `tuttiSum` and `--ranks`.

    build/release/bin/add_perf --ranks 4 -b 8    # a comment
    tools/build --fast && cmake --preset release
    ctest --preset release -L unit -R add
    cmake --build --preset release --target settings-doc

| when | text begins with |
|---|---|
| ever | rank 7 did not come within |
"""

TREE = {
    "README.md": TRUE,
    "docs/other.md": "Text.\n",
    "src/a.cc": SOURCE,
    "src/settings/settings_table.h": '{"TUTTI_WAIT_MS"}',
    "include/tutti/tutti.h": "typedef enum { tuttiSum } tuttiRedOp_t;\n",
    "tools/build": "case $1 in --fast) ;; esac\n",
    "bench/perf/add_perf.cc": 'app.add_option("-b,--minbytes"); app.add_option("--ranks");\n',
    "CMakeLists.txt": "option(TUTTI_CUDA ON)\nadd_custom_target(settings-doc)\n",
    "CMakePresets.json": '{"configurePresets": [{"name": "release"}, {"name": "base", "hidden": true}], '
                         '"buildPresets": [{"name": "release"}], "testPresets": [{"name": "release"}]}',
    "build/release/CTestTestfile.cmake": "add_test(unit.add true)\nset_tests_properties(unit.add PROPERTIES LABELS unit)\n",
    "build/release/bin/add_perf": "#!/bin/sh\necho '  -b,--minbytes SIZE'; echo '  --ranks N'\n",
}


def run(*command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check(readme):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**TREE, "README.md": readme}.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        return run(ROOT / "tools/check-docs", root)


class CheckDocs(unittest.TestCase):
    def expect_complaint(self, before, after, *words):
        """When `before` is replaced in the true text."""
        self.assertIn(before, TRUE)
        status, output = check(TRUE.replace(before, after))
        self.assertEqual(status, 1, output)
        self.assertIn("1 against the truth", output)
        for word in ("README.md:", *words):
            self.assertIn(word, output)

    def test_accepts_what_is_true(self):
        status, output = check(TRUE)
        self.assertEqual(status, 0, output)
        self.assertIn("4 commands and 3 quotes", output)

    def test_an_empty_tree_is_no_success(self):
        with tempfile.TemporaryDirectory() as root:
            Path(root, "CMakePresets.json").write_text(TREE["CMakePresets.json"], encoding="utf-8")
            self.assertEqual(run(ROOT / "tools/check-docs", root)[0], 1)

    def test_a_word_that_the_program_does_not_say(self):
        self.expect_complaint("ms: look`", "ms: search`", ":3:", "says no such thing")

    def test_a_text_in_another_order(self):
        self.expect_complaint("rank 3 (...) did not come within 5 ms", "did not come rank 3 (...) within 5 ms", "within 5 ms")

    def test_a_text_that_only_a_comment_has(self):
        self.expect_complaint("rank 3 (...) did not come within 5 ms", "a text in a comment", "a text in a comment")

    def test_a_text_in_a_table(self):
        self.expect_complaint("rank 7 did not come", "rank 7 is not here", ":13:", "rank 7 is not here")

    def test_an_option_of_a_program(self):
        self.expect_complaint("--ranks 4", "--rank 4", ":6:", "add_perf has no option --rank")

    def test_an_option_alone(self):
        self.expect_complaint("and `--ranks`", "and `--processes`", "--processes")

    def test_an_option_of_a_script(self):
        self.expect_complaint("--fast", "--faster", ":7:", "tools/build has no option --faster")

    def test_a_script_that_is_not_there(self):
        self.expect_complaint("tools/build", "tools/make", "tools/make does not exist")

    def test_an_unknown_program(self):
        self.expect_complaint("build/release/bin/add_perf --ranks 4 -b 8", "cd build && sum_perf", "sum_perf is neither")

    def test_a_preset(self):
        self.expect_complaint("cmake --preset release", "cmake --preset base", "no preset base in configurePresets")

    def test_a_target(self):
        self.expect_complaint("settings-doc", "settings", "no target settings")

    def test_a_label(self):
        self.expect_complaint("-L unit", "-L units", "no test fits ctest -L units")

    def test_an_expression_that_fits_no_test(self):
        self.expect_complaint("-R add", "-R sum", "no test fits")

    def test_a_file(self):
        self.expect_complaint("`src/a.cc`", "`src/b.cc`", "src/b.cc does not exist")

    def test_a_link(self):
        self.expect_complaint("docs/other.md", "docs/third.md", "leads nowhere")

    def test_a_setting(self):
        self.expect_complaint("TUTTI_WAIT_MS", "TUTTI_WAIT", "TUTTI_WAIT is neither")

    def test_an_option_of_the_build(self):
        self.expect_complaint("TUTTI_CUDA", "TUTTI_GPU", "TUTTI_GPU is neither")

    def test_a_name_of_the_interface(self):
        self.expect_complaint("tuttiSum", "tuttiTotal", "tuttiTotal is not in the headers")


class ReadAloud(unittest.TestCase):
    TEXT = """Put this into `~/there/a.c`:

    #include <stdio.h>

and do

    export GREETING=hello
    (cat ~/there/a.c
     echo $GREETING)

which prints

    hello
"""

    def read(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            readme = Path(folder, "README.md")
            readme.write_text(text, encoding="utf-8")
            return run(ROOT / "tests/install/readme_test.py", "--readme", readme, *options)

    def expect_failure(self, before, after, *words):
        self.assertIn(before, self.TEXT)
        status, output = self.read(self.TEXT.replace(before, after))
        self.assertNotEqual(status, 0, output)
        for word in words:
            self.assertIn(word, output)

    def test_a_true_text(self):
        status, output = self.read(self.TEXT)
        self.assertEqual(status, 0, output)
        self.assertIn("2 commands ran, 1 files were written, 1 outputs", output)

    def test_another_output(self):
        self.expect_failure("    hello\n", "    goodbye\n", "line 13", "was not printed", "goodbye")

    def test_a_command_that_fails(self):
        self.expect_failure("(cat", "(exit 3; cat", "line 7", "ended with 3")

    def test_a_file_that_is_not_told_where_to_be(self):
        self.expect_failure("~/there/a.c`:", "a.c`:", "where to put it")

    def test_a_text_without_commands(self):
        self.assertNotEqual(self.read("Text.\n")[0], 0)

    def test_make_is_not_there(self):
        self.expect_failure("(cat", "(make || exit; cat", "has no make")

    def test_another_shell_cleans_up_behind_itself(self):
        status, output = self.read(self.TEXT, "--shell", f"bash -c 'export HOME={self.folder()}; bash; sleep 0.3; touch ~/clean'")
        self.assertEqual(status, 0, output)
        self.assertTrue(Path(self.home, "clean").exists())
        self.assertTrue(Path(self.home, "there/a.c").exists())

    def folder(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.home = holder.name
        return self.home

    def test_what_is_left_out(self):
        status, output = self.read(self.TEXT.replace("export", "false\n    export"), "--skip", "false")
        self.assertEqual(status, 0, output)


class Filters(unittest.TestCase):
    def run_with(self, option):
        done = subprocess.run([Path(os.environ["TUTTI_BIN_DIR"], "tutti_unit_tests"), option], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_one_that_fits_no_test_fails(self):
        status, output = self.run_with("--gtest_filter=Nothing*")
        self.assertEqual(status, 1, output)
        self.assertIn("no test fits --gtest_filter=Nothing*", output)

    def test_one_that_fits_passes(self):
        self.assertEqual(self.run_with("--gtest_filter=SettingsTable.*")[0], 0)

    def test_a_list_is_no_run(self):
        self.assertEqual(self.run_with("--gtest_list_tests")[0], 0)


if __name__ == "__main__":
    unittest.main()
