"""Jobs of mpirun: who they are the scripts ask tutti.export_env(), and nobody else."""
import unittest

import deepspeed_test
import jobs
import training


class Ddp(training.TrainingTest):
    def test_ddp(self):
        reference = self.train("pytorch/ddp.py", "--epochs", "2", backend=training.REFERENCE)
        self.same(self.train("pytorch/ddp.py", "--epochs", "2", launcher=training.mpirun), reference)


@unittest.skipUnless(jobs.has("deepspeed"), "needs deepspeed")
class DeepSpeed(deepspeed_test.Zero2):
    def test_zero2(self):
        reference = self.train("deepspeed/zero2.py", "--epochs", "1", backend=training.REFERENCE)
        self.same(self.train("deepspeed/zero2.py", "--epochs", "1", launcher=training.mpirun), reference)


if __name__ == "__main__":
    jobs.main()
