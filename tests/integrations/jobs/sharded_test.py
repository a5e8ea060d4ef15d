"""FSDP2, distributed checkpoints, and ZeroRedundancyOptimizer."""
import jobs
import torch
import training
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save


class Fsdp(training.TrainingTest):
    def read(self, checkpoint):
        """All parts of a distributed checkpoint, put together, the optimizer's too."""
        whole = self.folder / "whole.pt"
        dcp_to_torch_save(checkpoint, whole)
        saved = torch.load(whole, weights_only=False)
        moments = {f"{name} {kind}": value for name, kinds in saved["optimizer"]["state"].items() for kind, value in kinds.items()}
        return training.Learned({**saved["model"], **moments}, list(saved["losses"]))

    def fsdp2_trains(self, *arguments, **more):
        return self.trains("pytorch/fsdp2.py", "--epochs", "2", *arguments, **more)


class TwoRanks(Fsdp):
    def test_parameters_in_fp32(self):
        self.fsdp2_trains()

    def test_mixed_precision(self):
        self.fsdp2_trains("--mixed-precision")

    def test_a_divisor_of_ones_own(self):
        """ReduceOp.PREMUL_SUM, which Gloo has not: there gradients are added first."""
        self.fsdp2_trains("--divide-by", "4", only_reference=["--sum"])


class OtherNumbers(Fsdp):
    def test_checkpoint_of_two_ranks_taken_up_by_three(self):
        first = self.train("pytorch/fsdp2.py", "--epochs", "1", name="first")
        learned = self.trains("pytorch/fsdp2.py", "--epochs", "3", "--resume", self.folder / "tutti-2-first", ranks=3,
                              bound=training.ANOTHER_ORDER)
        self.assertEqual(learned.losses[0], first.losses[0])

    def test_parameters_in_fp32_of_four_ranks(self):
        self.fsdp2_trains(ranks=4, bound=training.ANOTHER_ORDER)

    def test_mixed_precision_of_four_ranks(self):
        self.fsdp2_trains("--mixed-precision", ranks=4, bound=0.1)


class ShardedOptimizer(training.TrainingTest):
    def test_zero_redundancy_optimizer(self):
        self.trains("pytorch/zero_optimizer.py")


if __name__ == "__main__":
    jobs.main()
