"""What CMake has to know of the torch that the extension is built for: one line, an item of its own between semicolons.

Where its headers and libraries are, the C++ ABI of the latter (0 or 1), its CUDA ("13.0"; "none" of a build for CPUs).
"""
from pathlib import Path

import torch

print(Path(torch.__file__).parent, int(torch.compiled_with_cxx11_abi()), torch.version.cuda or "none", sep=";")
