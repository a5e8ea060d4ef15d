"""What can be seen of a job of PyTorch: statistics, the profiler, TUTTI_TRACE, and PyTorch's analyzer of flight recorders on the
records of a job that hangs."""
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jobs
import torch_jobs
from tutti._ports import free_port


class Statistics(torch_jobs.TorchTest):
    def test_two_ranks(self):
        self.torchrun(2, "statistics.py")

    def test_three_ranks_over_tcp(self):
        self.torchrun(3, "statistics.py", TUTTI_TRANSPORT="tcp")


class Profiler(torch_jobs.TorchTest):
    def test_a_step_of_distributed_data_parallel(self):
        self.torchrun(2, "profiled.py")


class Trace(torch_jobs.TorchTest):
    def test_it_has_the_calls_and_whom_they_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "job.json"
            self.torchrun(2, "traced.py", TUTTI_TRACE=str(file))
            events = json.loads(file.read_text(encoding="utf-8").rstrip().rstrip(",") + "]")
        calls = [event for event in events if event["name"].startswith("all-reduce")]
        ours = [event for event in calls if event["args"]["count"] == 25_000]
        self.assertEqual(len(ours), 2 * 10, calls)
        for event in ours:
            self.assertEqual((event["ph"], event["args"]["type"], event["args"]["bytes"]), ("X", "float", 100_000))
            self.assertRegex(event["args"]["plan"], r"over \d+ channel")
            self.assertGreaterEqual(event["dur"], 0)
        waits = [event for event in events if event["name"] == "wait for rank 1"]
        self.assertTrue(waits, "rank 0 waited for rank 1")
        self.assertEqual({event["args"]["peer"] for event in waits}, {1})
        rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertTrue(any("waits of channel 0" in row for row in rows), rows)


class FlightRecorder(torch_jobs.TorchTest):
    def said_by(self, module, *arguments):
        done = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=torch_jobs.environment(), timeout=jobs.SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def analyzed(self, records):
        """What PyTorch's analyzer says of them, and the operations that it has found, with those that were called wrongly."""
        traces, found = Path(records) / "traces", Path(records) / "found"
        self.said_by("tutti_torch.flight_recorder", records, traces)
        said = self.said_by("torch.distributed.flight_recorder.fr_trace", traces, "-o", found)
        return said, pickle.loads(found.read_bytes())[1].collectives

    def assert_names_the_missing_rank(self, said):
        self.assertIn("Not all ranks joining collective", said)
        self.assertIn("collective: nccl:all_reduce", said)
        self.assertIn("missing ranks: {3}", said)
        self.assertIn("input sizes: [[200]]", said)
        self.assertEqual(said.count("Not all ranks joining"), 1, said)

    def test_a_time_out(self):
        with tempfile.TemporaryDirectory() as records:
            statuses, said = torch_jobs.by_hand(4, "hung.py", "3", TUTTI_DUMP_DIR=records)
            self.assertEqual(statuses, [0] * 4, said)
            self.assert_names_the_missing_rank(self.analyzed(records)[0])

    def test_processes_that_are_asked_while_they_hang(self):
        with tempfile.TemporaryDirectory() as records:
            self.assert_names_the_missing_rank(self.analyzed(self.hang_and_ask(records))[0])

    def test_a_job_that_is_well(self):
        with tempfile.TemporaryDirectory() as records:
            self.torchrun(3, "asked.py", TUTTI_DUMP_DIR=records)
            said, found = self.analyzed(records)
        for word in ("Not all ranks", "has errors", "mismatch", "cannot decide"):
            self.assertNotIn(word, said)
        self.assertEqual([one for one in found if not one.pass_check or one.missing_ranks or one.collective_state != "completed"], [])
        named = {one.collective_name.removeprefix("nccl:").split()[0] for one in found}
        self.assertLessEqual({"all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "all_gather_v", "gather",
                              "scatter", "all_reduce_barrier"}, named)
        ends = {tuple(sorted(one.expected_ranks)) for one in found if " " in one.collective_name}
        self.assertEqual(ends, {(0, 1), (0, 2), (1, 2)}, "the messages of each pair")

    def hang_and_ask(self, records):
        told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "4", "TUTTI_DUMP_DIR": records}
        ranks = [subprocess.Popen([sys.executable, str(jobs.RANKS / "hung.py"), "600"], stdout=subprocess.PIPE, text=True,
                                  env=torch_jobs.environment(RANK=str(rank), LOCAL_RANK=str(rank), **told)) for rank in range(4)]
        try:
            for rank in ranks:
                self.assertEqual(rank.stdout.readline(), "stands\n")
            self.await_records(ranks, Path(records))
        finally:
            for rank in reversed(ranks):  # the first has the store
                rank.kill()
                rank.communicate()
        return records

    def await_records(self, ranks, folder):
        """Until all have written that three are in the call which the fourth has not made."""
        for _ in range(int(jobs.SECONDS)):
            for rank in ranks:
                rank.send_signal(signal.SIGUSR2)
            time.sleep(0.5)
            records = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("tutti-*.json")]
            if len(records) == 4 and sum(record["calls"][-1]["count"] == 200 for record in records) == 3:
                return
        self.fail(f"no four records that show it in {folder}")


class Converting(unittest.TestCase):
    def refused(self, folder, target):
        done = subprocess.run([sys.executable, "-m", "tutti_torch.flight_recorder", str(folder), str(target)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=jobs.SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_what_cannot_be_read_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("there are no records in", self.refused(folder, Path(folder) / "traces"))
            (Path(folder) / "other.json").write_text("{}", encoding="utf-8")
            self.assertIn("other.json is no record of tutti", self.refused(folder, Path(folder) / "traces"))


if __name__ == "__main__":
    jobs.main()
