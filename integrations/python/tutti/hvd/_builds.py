"""What scripts ask of Horovod about how it was built, answered for tutti."""

from __future__ import annotations


def mpi_threads_supported() -> bool:
    """There is no MPI in it."""
    return False


def mpi_enabled() -> bool:
    """No: a launcher of MPI's may start the ranks, but nothing is sent by MPI."""
    return False


def mpi_built() -> bool:
    """No."""
    return False


def gloo_enabled() -> bool:
    """No."""
    return False


def gloo_built() -> bool:
    """No."""
    return False


def nccl_built() -> int:
    """No NCCL: 0."""
    return 0


def cuda_built() -> bool:
    """No: tensors are in host memory."""
    return False


def rocm_built() -> bool:
    """No."""
    return False


def ccl_built() -> bool:
    """No."""
    return False


def ddl_built() -> bool:
    """No."""
    return False
