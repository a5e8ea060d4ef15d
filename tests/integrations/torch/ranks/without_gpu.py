"""Ranks whose PyTorch is a build for CUDA: CPU tensors as ever, and what is said where there is no GPU. Usage: without_gpu.py"""
import ctypes
from pathlib import Path

import torch
import torch.distributed as dist
import tutti_torch
from case import main, raises


def cpu_tensors():
    tensor = torch.full((3,), dist.get_rank() + 1.0)
    dist.all_reduce(tensor)
    ranks = dist.get_world_size()
    assert tensor.tolist() == [ranks * (ranks + 1) / 2] * 3
    dist.barrier()


def batches():
    """In such a build they are coalesced, for the sake of GPUs."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    out = torch.zeros(2)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((2,), float(rank)), (rank + 1) % ranks),
                                    dist.P2POp(dist.irecv, out, (rank - 1) % ranks)])
    assert len(works) == 1
    works[0].wait()
    assert out.tolist() == [(rank - 1) % ranks] * 2


def the_library_is_for_gpus():
    library = ctypes.CDLL(next(Path(tutti_torch.__file__).parent.glob("libtutti.so.*")))
    library.tuttiGetLastError.restype = ctypes.c_char_p
    memory = ctypes.c_void_p()
    status = library.tuttiMemAllocDevice(ctypes.byref(memory), ctypes.c_size_t(16), 0, 0)
    text = library.tuttiGetLastError(None).decode()
    assert "built without CUDA" not in text, text
    assert (status == 0) == torch.cuda.is_available(), (status, text)


def no_gpu():
    """PyTorch says so, and the group is as good as before."""
    assert torch.version.cuda is not None
    if torch.cuda.is_available():
        return
    text = raises(RuntimeError, "NVIDIA", torch.zeros, 1, device="cuda")
    assert "tutti" not in text, text
    raises(RuntimeError, ["CUDA"], dist.barrier, device_ids=[0])
    cpu_tensors()


if __name__ == "__main__":
    main(cpu_tensors, batches, the_library_is_for_gpus, no_gpu)
