"""What else people put on torch.distributed: Accelerate, Lightning Fabric, DTensor, pipelines, torch.compile."""
import unittest

import jobs
import training


class OnTop(training.TrainingTest):
    @unittest.skipUnless(jobs.has("accelerate"), "needs accelerate")
    def test_accelerate(self):
        self.trains("pytorch/accelerated.py", "--accumulate", "2")

    def test_pipeline_by_hand(self):
        self.trains("pytorch/send_recv.py", ranks=3)


class MoreOfIt(training.TrainingTest):
    @unittest.skipUnless(jobs.has("lightning_fabric"), "needs lightning-fabric")
    def test_fabric(self):
        self.trains("pytorch/fabric.py")

    def test_tensor_parallelism(self):
        self.trains("pytorch/tensor_parallel.py")

    def test_pipeline_of_gpipe(self):
        self.trains("pytorch/pipeline.py")

    def test_pipeline_of_one_forward_one_backward(self):
        self.trains("pytorch/pipeline.py", "--schedule", "1f1b", ranks=4)

    @unittest.skipUnless(jobs.has("lightning_fabric"), "needs lightning-fabric")
    def test_fabric_in_bf16(self):
        self.trains("pytorch/fabric.py", "--precision", "bf16-mixed")

    def test_tensor_parallelism_of_four_ranks(self):
        self.trains("pytorch/tensor_parallel.py", ranks=4, bound=training.ANOTHER_ORDER)


class Compiled(training.TrainingTest):
    def test_functional_collectives(self):
        self.trains("pytorch/compiled.py")


if __name__ == "__main__":
    jobs.main()
