"""CUDA tensors on the emulated GPU: see emulated/emulated_gpu.cc and ranks/on_gpu.py. Usage: gpu_test.py BUILD_FOLDER"""
import subprocess
import sys
from pathlib import Path

import jobs
from torch_jobs import TorchTest

SOURCE = Path(__file__).resolve().parent / "emulated"
# The emulation is slow: few blocks, small slots.
SETTINGS = {"TUTTI_GPU_BUFFER_MIB": "1", "TUTTI_CHANNELS": "2"}


def build(folder):
    """Makes the extension on the emulated GPU: of what is there from the last time, only what has changed."""
    commands = (["cmake", "-G", "Ninja", "-S", SOURCE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                 f"-DPython3_EXECUTABLE={sys.executable}"],
                ["cmake", "--build", folder, "--target", "emulated_gpu", "_C"],
                ["cmake", "--install", folder, "--component", "torch", "--prefix", folder / "site/tutti_torch"])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{command}\n{done.stdout}")
    return folder / "site"


class OnTheEmulatedGpu(TorchTest):
    site: Path

    def on_gpu(self, ranks, *cases, **variables):
        self.torchrun(ranks, "on_gpu.py", "--emulated", *cases, PYTHONPATH=f"{self.site}:{jobs.HERE}", **SETTINGS, **variables)

    def test_two_ranks(self):
        self.on_gpu(2)

    def test_three_ranks(self):
        self.on_gpu(3)


if __name__ == "__main__":
    OnTheEmulatedGpu.site = build(Path(sys.argv.pop(1)).resolve())
    jobs.main()
