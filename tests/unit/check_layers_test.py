"""tools/check-layers must see each kind of offence in a small tree that has one of each, and nothing in a good tree."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "check-layers")

GOOD = {
    "include/tutti/tutti.h": "#include <stddef.h>\n",
    "src/base/types.h": "#include <cstdint>\n#include <fmt/format.h>\n",
    "src/settings/settings.cc": "const char* v = std::getenv(name);\n",
    "src/link/fifo.h": '#include "base/types.h"\n',
    "src/link/link.h": '#include "link/fifo.h"\n',
    "src/schedule/schedule.h": "#include <vector>\n",
    "kernels/host/combine.h": '#include "link/fifo.h"\n',
    "transports/shm/shm.h": '#include "link/link.h"\n',
    "transports/shm/shm.cc": '#include "shm.h"\n#include <sys/mman.h>\n',
    "transports/tcp/tcp.h": '#include "link/link.h"\n',
    "transports/builtin.cc": '#include "link/link.h"\n#include "transports/shm/shm.h"\n#include "transports/tcp/tcp.h"\n',
    "src/device/program.h": '#include "link/fifo.h"\n',
    "src/device/device.h": '#include "device/program.h"\n',
    "kernels/cuda/device.cc": '#include "device/device.h"\n#include <cuda_runtime.h>\n',
    "bench/perf.cc": "#include <tutti/tutti.h>\n#include <CLI/CLI.hpp>\n",
}


def run_on(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def expect_complaint(self, path, text, *words):
        status, output = run_on({**GOOD, path: text})
        self.assertEqual(status, 1, output)
        for word in (path, *words):
            self.assertIn(word, output)
        self.assertIn("1 against the rules", output)

    def expect_no_good(self, files, *words):
        status, output = run_on({**GOOD, **files})
        self.assertEqual(status, 1, output)
        for word in (*words, "1 against the rules"):
            self.assertIn(word, output)

    def test_accepts_a_good_tree(self):
        status, output = run_on(GOOD)
        self.assertEqual(status, 0, output)

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(run_on({})[0], 1)

    def test_a_lower_layer_includes_a_higher_one(self):
        self.expect_complaint("src/base/bad.h", '#include "schedule/schedule.h"\n', ":1:", "src/schedule/schedule.h")

    def test_a_layer_includes_a_sibling_it_does_not_know(self):
        self.expect_complaint("src/schedule/bad.cc", '\n#include "link/fifo.h"\n', ":2:", "src/schedule may include")

    def test_cuda_shows_in_its_folder_only(self):
        self.expect_complaint("src/engine/bad.cc", "#include <cuda_runtime.h>\n", ":1:", "kernels/cuda")

    def test_host_kernels_know_no_device(self):
        self.expect_complaint("kernels/host/bad.cc", '#include "device/device.h"\n', ":1:", "src/device/device.h")

    def test_nothing_of_the_source_knows_the_kernels_for_gpus(self):
        self.expect_complaint("src/device/bad.h", '#include "kernels/cuda/device.cc"\n', ":1:", "kernels/cuda")

    def test_one_transport_includes_another(self):
        self.expect_complaint("transports/tcp/bad.cc", '#include "transports/shm/shm.h"\n', "transports/shm/shm.h")

    def test_one_transport_reaches_another_by_a_relative_path(self):
        self.expect_complaint("transports/tcp/bad.cc", '#include "../shm/shm.h"\n', "transports/shm/shm.h")

    def test_the_link_includes_a_transport(self):
        self.expect_complaint("src/link/bad.cc", '#include "transports/shm/shm.h"\n', "src/link may include")

    def test_kernels_see_of_the_links_the_fifo_only(self):
        self.expect_complaint("kernels/host/bad.h", '#include "link/link.h"\n', "src/link/fifo.h")

    def test_the_public_header_includes_the_inside(self):
        self.expect_complaint("include/tutti/bad.h", '#include "base/types.h"\n', "standard headers only")

    def test_a_program_includes_the_inside(self):
        self.expect_complaint("bench/bad.cc", '#include "base/types.h"\n', "src/base/types.h")

    def test_a_library_in_the_wrong_place(self):
        self.expect_complaint("src/schedule/bad.cc", "#include <hwloc.h>\n", "src/topology")

    def test_an_unknown_library(self):
        self.expect_complaint("src/base/bad.h", "#include <absl/strings/str_cat.h>\n", "LIBRARIES")

    def test_a_file_that_does_not_exist(self):
        self.expect_complaint("src/base/bad.h", '#include "base/nowhere.h"\n', "no file of the project")

    def test_a_folder_without_a_layer(self):
        self.expect_complaint("src/misc/bad.h", "#include <vector>\n", "LAYERS")

    def test_the_environment_is_read_elsewhere(self):
        self.expect_complaint("src/link/bad.cc", 'auto* v = getenv("HOME");\n', "settings")

    def test_a_static_local_that_a_fork_may_catch(self):
        for bad in ("static const auto found = find();", "static auto* const one = new One;", "static const Bye bye(fd);"):
            self.expect_complaint("src/link/bad.cc", f"void f() {{\n  {bad}\n}}\n", ":2:", "fork")

    def test_a_thread_that_takes_signals(self):
        for bad in ("std::thread([] {}).detach();", "std::thread worker(f);", "std::thread worker{f};", "std::jthread one(f);",
                    "pthread_create(&one, nullptr, f, nullptr);", "auto later = std::async(f);"):
            self.expect_complaint("src/link/bad.cc", f"void f() {{\n  {bad}\n}}\n", ":2:", "startThread")
        good = "  std::thread thread_;\n  std::vector<std::thread> all_;\n  void keep(std::thread&& one);\n"
        self.assertEqual(run_on({**GOOD, "src/link/good.h": good})[0], 0)

    def test_statics_that_need_no_making(self):
        good = ("  static constexpr int kOne = 1;\n  static int f(int a = 0);\n  static std::once_flag once;\n"
                "  static const std::string& g(int a);\nstatic const int two = f();\n")
        self.assertEqual(run_on({**GOOD, "src/link/good.h": good})[0], 0)

    def test_two_folders_include_each_other(self):
        status, output = run_on({**GOOD, "src/base/bad.cc": '#include "link/link.h"\n'})
        self.assertEqual(status, 1, output)
        self.assertIn("a circle of folders: src/base includes src/link (src/base/bad.cc:1), "
                      "src/link includes src/base (src/link/fifo.h:1)", output)

    def test_three_folders_include_each_other_in_a_circle(self):
        status, output = run_on({**GOOD, "src/base/bad.cc": '#include "job/id.h"\n', "src/job/id.h": '#include "net/net.h"\n',
                                 "src/net/net.h": '#include "base/types.h"\n'})
        self.assertEqual(status, 1, output)
        for arrow in ("src/base includes src/job", "src/job includes src/net", "src/net includes src/base"):
            self.assertIn(arrow, output)
        self.assertEqual(output.count("a circle"), 1, output)

    def test_two_headers_include_each_other(self):
        circle = {"src/link/one.h": '#include "link/two.h"\n', "src/link/two.h": '#include "link/one.h"\n'}
        status, output = run_on({**GOOD, **circle})
        self.assertEqual(status, 1, output)
        self.assertIn("a circle of units: src/link/one includes src/link/two (src/link/one.h:1), "
                      "src/link/two includes src/link/one (src/link/two.h:1)", output)
        self.assertIn("1 against the rules", output)

    def test_units_include_each_other_through_a_source(self):
        one = {"src/link/one.h": "", "src/link/one_part.cc": '#include "link/two.h"\n'}
        self.expect_no_good({**one, "src/link/two.h": '#include "link/one.h"\n'}, "src/link/one includes src/link/two")
        self.expect_no_good({**one, "src/link/two.h": "", "src/link/two.cc": '\n#include "link/one.h"\n'},
                            "src/link/one includes src/link/two (src/link/one_part.cc:1)", "(src/link/two.cc:2)")

    def test_parts_of_one_unit_are_no_circle(self):
        good = {"src/link/one.h": '#include "link/one_part.h"\n', "src/link/one.cc": '#include "link/one.h"\n',
                "src/link/one_part.h": "", "src/link/one_part.cc": '#include "link/one_part.h"\n',
                "src/link/one_other.cc": '#include "link/one.h"\n#include "link/one_part.h"\n'}
        status, output = run_on({**GOOD, **good})
        self.assertEqual(status, 0, output)

    def test_a_folder_with_too_many_files(self):
        full = {f"src/plan/file{number}.h": "" for number in range(25)}
        self.assertEqual(run_on({**GOOD, **full})[0], 0)
        self.expect_no_good({**full, "src/plan/one_more.cc": ""}, "src/plan:1: 26 files; a folder of src has at most 25")

    def test_a_file_too_long(self):
        self.expect_complaint("src/base/long.h", "//\n" * 601, "601 lines")


if __name__ == "__main__":
    unittest.main()
