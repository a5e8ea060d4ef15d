"""Data-parallel training in the style of Horovod, for PyTorch's tensors in host memory. It is not Horovod, and shares
no code.

    import tutti.hvd as hvd                     # was: import horovod.torch as hvd
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

Ranks find each other's tensors by names, so they may submit them in different orders; a thread of the library agrees
with those of the other ranks on what is ready everywhere, and runs small tensors together. Any thread may call the
operations; a tensor that was handed over is not to be touched until its handle has ended. What goes wrong on one rank
ends the waits of all, by an exception of tutti that names the tensor or the rank. docs/horovod.md says what differs
from Horovod.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("tutti.hvd needs PyTorch, 2.1 or newer: install torch beside tutti") from error

from tutti.hvd._builds import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from tutti.hvd._compressors import Compression, Compressor
from tutti.hvd._differentiable import allgather, allreduce, alltoall, broadcast, grouped_allreduce, reducescatter
from tutti.hvd._objects import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from tutti.hvd._operations import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    ReduceOp,
    Sum,
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    barrier,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    join,
    poll,
    reducescatter_async,
    synchronize,
)
from tutti.hvd._optimizer import DistributedOptimizer
from tutti.hvd._process_sets import ProcessSet, global_process_set
from tutti.hvd._world import (
    add_process_set,
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    remove_process_set,
    shutdown,
    size,
    stats,
)

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "Compressor",
    "DistributedOptimizer",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "ReduceOp",
    "Sum",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "stats",
    "synchronize",
]
