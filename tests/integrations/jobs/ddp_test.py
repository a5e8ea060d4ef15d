"""DistributedDataParallel: however the ranks are started and meet, in each precision, with accumulation, from checkpoints."""
import json
import math

import jobs
import training
from tutti._ports import free_port

DIGITS = 1437  # to learn from
PARAMETERS = 64 * 128 + 128 + 128 * 128 + 128 + 128 * 10 + 10


class DdpTest(training.TrainingTest):
    def ddp(self, *arguments, **more):
        return self.train("pytorch/ddp.py", "--epochs", "2", *arguments, **more)

    def ddp_trains(self, *arguments, **more):
        return self.trains("pytorch/ddp.py", "--epochs", "2", *arguments, **more)

    def by_hand(self, ranks, *arguments, **variables):
        """Each rank is started with a command of its own, and PyTorch's variables alone."""
        job, checkpoint = training.Processes(), self.folder / "by-hand"
        for rank in range(ranks):
            who = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
            job.start([training.sys.executable, training.EXAMPLES / "pytorch/ddp.py", "--epochs", "2", "--checkpoint", checkpoint,
                       *arguments], training.environment(**who, **variables))
        job.wait()
        return self.read(checkpoint)


class Starts(DdpTest):
    """By torchrun, by hand, and by meeting elsewhere than at MASTER_ADDR: two ranks learn the same every time."""

    def test_all_ways_to_start_and_to_meet(self):
        reference = self.ddp(backend=training.REFERENCE, launcher=training.torchrun)
        with self.subTest("torchrun"):
            self.same(self.ddp(launcher=training.torchrun), reference)
        with self.subTest("MASTER_ADDR and others by hand"):
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "NODE_RANK": "0"}
            self.same(self.by_hand(2, **place), reference)
        with self.subTest("tcp://"):
            self.same(self.by_hand(2, "--init-method", f"tcp://127.0.0.1:{free_port()}"), reference)
        with self.subTest("file://"):
            self.same(self.by_hand(2, "--init-method", f"file://{self.folder}/store"), reference)


class Precisions(DdpTest):
    def test_autocast_in_bf16_and_gradients_that_travel_in_bf16(self):
        self.ddp_trains("--precision", "autocast-bf16", "--hook", "bf16")


class MorePrecisions(DdpTest):
    def test_autocast_in_fp16_with_a_scaler_and_gradients_that_travel_in_fp16(self):
        self.ddp_trains("--precision", "autocast-fp16", "--hook", "fp16")

    def test_the_whole_model_in_bf16(self):
        self.ddp_trains("--precision", "bf16")


class Accumulating(DdpTest):
    def gradients_of(self, trace):
        """How often the ranks have added up their gradients: all-reduces of as many numbers as there are parameters."""
        events = json.loads(trace.read_text(encoding="utf-8").rstrip().rstrip(",") + "]")
        calls = [event for event in events if event["name"].startswith("all-reduce") and event["ph"] == "X"]
        return sum(int(event["args"]["count"]) == PARAMETERS for event in calls)

    def accumulates(self, batches_a_step):
        """no_sync() spares all collectives but one a step of the optimizer."""
        trace, arguments = self.folder / "trace.json", ("--accumulate", str(batches_a_step))
        learned = self.ddp(*arguments, TUTTI_TRACE=str(trace))
        batches = math.ceil(math.ceil(DIGITS / 2) / 32)  # an epoch and rank
        count, expected = self.gradients_of(trace), 2 * 2 * math.ceil(batches / batches_a_step)  # two ranks, two epochs
        print(f"\n  {count} all-reduces of gradients in {2 * 2 * batches} batches, {batches_a_step} to a step")
        self.assertEqual(count, expected)
        self.same(learned, self.ddp(*arguments, backend=training.REFERENCE))


class Accumulation(Accumulating):
    def test_four_batches_a_step(self):
        self.accumulates(4)


class EveryBatch(Accumulating):
    def test_a_step_for_every_batch(self):
        self.accumulates(1)


class Checkpoints(DdpTest):
    def test_resume(self):
        """Two epochs, and two more after a new start, are four epochs; the checkpoint fits either backend."""
        reference = self.train("pytorch/ddp.py", "--epochs", "4", backend=training.REFERENCE, name="whole")
        self.ddp(name="parts")
        self.same(self.train("pytorch/ddp.py", "--epochs", "4", "--resume", name="parts"), reference)


class FourRanks(DdpTest):
    """Sums of more than two numbers depend on their order."""

    def test_torchrun(self):
        self.ddp_trains(ranks=4, launcher=training.torchrun, bound=training.ANOTHER_ORDER)

    def test_autocast_and_bf16(self):
        self.ddp_trains("--precision", "autocast-bf16", "--hook", "bf16", ranks=4, bound=0.05)

    def test_autocast_and_fp16(self):
        self.ddp_trains("--precision", "autocast-fp16", "--hook", "fp16", ranks=4, bound=0.01)

    def test_by_hand(self):
        reference = self.ddp(backend=training.REFERENCE, ranks=4)
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "NODE_RANK": "0"}
        self.same(self.by_hand(4, **place), reference, bound=training.ANOTHER_ORDER)


if __name__ == "__main__":
    jobs.main()
