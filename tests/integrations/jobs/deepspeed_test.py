"""DeepSpeed with ZeRO stage 2, configured as examples/deepspeed/zero2.json says."""
import jobs
import torch
import training


class Zero2(training.TrainingTest):
    def read(self, checkpoint):
        """The parameters, and of each rank the part in fp32 that its optimizer steps."""
        folder = checkpoint / (checkpoint / "latest").read_text(encoding="utf-8")
        saved = torch.load(folder / "mp_rank_00_model_states.pt", weights_only=False)
        model = dict(saved["module"])
        for path in folder.glob("*optim_states.pt"):
            state = torch.load(path, weights_only=False)["optimizer_state_dict"]
            model[path.name] = state["single_partition_of_fp32_groups"][0]
        return training.Learned(model, saved["losses"])


class Checkpoints(Zero2):
    def test_checkpoint(self):
        """One epoch, and one more after a new start, are two."""
        reference = self.train("deepspeed/zero2.py", "--epochs", "2", backend=training.REFERENCE, name="whole")
        self.train("deepspeed/zero2.py", "--epochs", "1", name="parts")
        self.same(self.train("deepspeed/zero2.py", "--epochs", "2", "--resume", name="parts"), reference)


class MoreOfIt(Zero2):
    def test_fp32(self):
        self.trains("deepspeed/zero2.py", "--epochs", "2", "--precision", "fp32")

    def test_bf16_of_four_ranks(self):
        self.trains("deepspeed/zero2.py", "--epochs", "2", ranks=4, bound=0.1)

    def test_fp32_of_four_ranks(self):
        self.trains("deepspeed/zero2.py", "--epochs", "2", "--precision", "fp32", ranks=4, bound=training.ANOTHER_ORDER)


if __name__ == "__main__":
    jobs.main()
