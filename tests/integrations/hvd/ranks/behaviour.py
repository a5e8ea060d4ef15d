"""What tutti.hvd does beside moving data. Usage: behaviour.py CASE..."""

import contextlib
import os
import random
import sys
import threading

import torch

import tutti
import tutti.hvd as hvd
from tutti.hvd._world import engine


def refused(kind, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


@contextlib.contextmanager
def held():
    """What is submitted in this block is heard of together: the library's thread stands still meanwhile."""
    stands, goes_on = threading.Event(), threading.Event()

    def stand():
        stands.set()
        goes_on.wait()

    asking = threading.Thread(target=engine().ask, args=(stand,))
    asking.start()
    stands.wait()
    try:
        yield
    finally:
        goes_on.set()
        asking.join()


def ones(elements=100):
    return torch.ones(elements)


def counted():
    """tutti.stats() has the communicators of this module, and may be asked by any thread while they work."""
    done, looks = threading.Event(), []

    def look():
        while not done.is_set() or not looks:
            looks.append(tutti.stats()["hvd_operations"])

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(20):
        hvd.allreduce(ones(), name=f"counted{number}", op=hvd.Sum)
    done.set()
    looking.join()
    assert looks == sorted(looks), looks
    stats, own = tutti.stats(), hvd.stats()
    assert stats["hvd_all_reduce_bytes"] >= 20 * 400 and stats["hvd_control_operations"] > 0, stats
    assert own["bus_bandwidth"] > 0 and own["all_reduce_operations"] == stats["hvd_all_reduce_operations"], (own, stats)
    assert 'operation="all_reduce"' in tutti.prometheus() and 'communicator="hvd",' in tutti.prometheus()


def step(names=20):
    """So many all-reduces, submitted together; how many of the library's operations that took, and how many
    exchanges."""
    before = hvd.stats()
    with held():
        handles = [hvd.allreduce_async(ones(), name=f"t{number}", op=hvd.Sum) for number in range(names)]
    for handle in handles:
        assert (hvd.synchronize(handle) == hvd.size()).all()
    after = hvd.stats()
    return [
        int(after.get(key, 0) - before.get(key, 0))
        for key in ("all_reduce_operations", "exchanges_in_full", "cache_hits")
    ]


def scrambled():
    dice = random.Random(hvd.rank())
    for number in range(10):
        handles = {
            name: hvd.allreduce_async(
                torch.full((name + 1,), float(name * hvd.rank() + number)), name=f"t{name}", op=hvd.Sum
            )
            for name in dice.sample(range(40), 40)
        }
        for name in dice.sample(range(40), 40):
            result = hvd.synchronize(handles[name])
            assert result.shape == (name + 1,)
            assert (result == sum(name * rank + number for rank in range(hvd.size()))).all(), (name, result)


def scrambled_kinds():
    """Operations of all kinds under way, in different orders."""
    rank, size = hvd.rank(), hvd.size()
    begin = {
        "reduce": lambda: hvd.allreduce_async(ones(), name="reduce", op=hvd.Sum),
        "gather": lambda: hvd.allgather_async(torch.full((rank + 1,), rank), name="gather"),
        "broadcast": lambda: hvd.broadcast_async(torch.tensor([rank]), size - 1, name="broadcast"),
        "exchange": lambda: hvd.alltoall_async(torch.arange(size), name="exchange"),
        "scatter": lambda: hvd.reducescatter_async(torch.arange(size), name="scatter", op=hvd.Sum),
    }
    dice = random.Random(rank)
    for _ in range(5):
        handles = {name: begin[name]() for name in dice.sample(sorted(begin), len(begin))}
        assert (hvd.synchronize(handles["reduce"]) == size).all()
        assert hvd.synchronize(handles["gather"]).tolist() == [r for r in range(size) for _ in range(r + 1)]
        assert hvd.synchronize(handles["broadcast"]).tolist() == [size - 1]
        assert hvd.synchronize(handles["exchange"]).tolist() == [rank] * size
        assert hvd.synchronize(handles["scatter"]).tolist() == [rank * size]


def fused():
    """One all-reduce for all, and once known nothing is said in full any more."""
    operations, exchanges, hits = step()
    assert operations == 1 and 1 <= exchanges <= hvd.size() and hits == 0, (operations, exchanges, hits)
    for _ in range(3):
        assert step() == [1, 0, 20]
    before = hvd.stats()["all_reduce_operations"]
    hvd.grouped_allreduce([ones()] * 7, name="group")  # in one piece, without being held
    assert hvd.stats()["all_reduce_operations"] - before == 1


def not_fused():
    """By HOROVOD_FUSION_THRESHOLD, which is that of five of them."""
    assert step()[0] == 4
    before = hvd.stats()["all_reduce_operations"]
    hvd.grouped_allreduce([ones()] * 7, name="group")  # in one piece, whatever the threshold
    assert hvd.stats()["all_reduce_operations"] - before == 1


def small_cache():
    """By HOROVOD_CACHE_CAPACITY, which is less than there are names: all goes well, and is said in full."""
    for _ in range(3):
        assert step()[0] >= 1


def joined():
    """Ranks with more data than others go on alone; then all do."""
    rank, size = hvd.rank(), hvd.size()
    for again in range(3):
        batches = 2 + (rank + again) % size
        for batch in range(batches):
            here = sum(2 + (r + again) % size > batch for r in range(size))
            assert hvd.allreduce(ones(1), name="sum", op=hvd.Sum).item() == here
            assert hvd.allreduce(ones(1), name="average").item() == torch.tensor(here / size)
            assert hvd.allreduce(ones(1) * 5, name="min", op=hvd.Min).item() == 5
            assert hvd.allreduce(-ones(1), name="max", op=hvd.Max).item() == -1
            assert hvd.allreduce(ones(1) * 2, name="product", op=hvd.Product).item() == 2**here
            assert hvd.allreduce(torch.tensor([7]), name="integers", op=hvd.Min).item() == 7
            scaled = hvd.allreduce(ones(1), name="scaled", op=hvd.Product, prescale_factor=3.0)
            assert scaled.item() == 3**here, "who has joined has nothing to scale"
            eighth = ones(1).to(torch.float8_e4m3fn)
            assert hvd.allreduce(eighth, name="float8", op=hvd.Min).float().item() == 1
            assert len(hvd.allgather(ones(3), name="gather")) == 3 * here
            if batch >= 2:
                refused(tutti.InvalidUsage, "joined", hvd.reducescatter, ones(6), name="scatter")
        last = hvd.join()
        assert 2 + (last + again) % size == 1 + size, last  # the one with most batches
    assert hvd.allreduce(ones(1), name="sum", op=hvd.Sum).item() == size
    joined_what_is_known()


def joined_what_is_known():
    """A rank that has joined has no rows for others, and nothing to broadcast, also of what all have done before."""
    known = {
        "the root, rank 0, joined": lambda: hvd.broadcast(ones(3), 0, name="known broadcast"),
        "rank 0 joined, and has no part": lambda: hvd.alltoall(torch.arange(hvd.size()), name="known exchange"),
        "there is no reducescatter": lambda: hvd.reducescatter(torch.arange(hvd.size()), name="known scatter"),
    }
    for _ in range(2):
        for call in known.values():
            call()
    if hvd.rank() > 0:
        while hvd.allreduce(ones(1), name="alone", op=hvd.Sum).item() == hvd.size():
            pass  # until rank 0 has joined
        for text, call in known.items():
            refused(tutti.InvalidUsage, text, call)
    else:
        hvd.allreduce(ones(1), name="alone", op=hvd.Sum)
    hvd.join()
    for call in known.values():
        call()


def mismatched():
    """An error on every rank, which names the tensor and the ranks; then all goes on."""
    rank = hvd.rank()
    last = hvd.size() - 1
    odd = rank == last
    most = "rank 0 has" if last == 1 else "ranks 0, 1 have"
    for _ in range(2):
        refused(
            tutti.InvalidUsage,
            f"allreduce of 'a': the ranks differ in the shape: {most} (3), rank {last} has (4)",
            hvd.allreduce,
            ones(4 if odd else 3),
            name="a",
        )
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the type: {most} float32, rank {last} has int32",
            hvd.allreduce,
            ones().to(torch.int32 if odd else torch.float32),
            name="b",
        )
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the operator: {most} sum, rank {last} has max",
            hvd.allreduce,
            ones(),
            name="c",
            op=hvd.Max if odd else hvd.Sum,
        )
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the root rank: {most} 0, rank {last} has 1",
            hvd.broadcast,
            ones(),
            int(odd),
            "d",
        )
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the operation: {most} allgather, rank {last} has alltoall",
            hvd.alltoall if odd else hvd.allgather,
            torch.ones(hvd.size()),
            name="e",
        )
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the shape: {most} (*, 2), rank {last} has (*, 3)",
            hvd.allgather,
            torch.ones(rank + 1, 3 if odd else 2),
            name="f",
        )
        assert (hvd.allreduce(ones(), name="a", op=hvd.Sum) == hvd.size()).all()
    for _ in range(2):
        refused(
            tutti.InvalidUsage,
            f"the ranks differ in the group's size: {most} 2, rank {last} has 3",
            hvd.grouped_allreduce,
            [ones()] * (3 if odd else 2),
            name="group",
        )
        assert len(hvd.grouped_allreduce([ones()] * 3, name="group")) == 3
    handle = hvd.allreduce_async(ones(3 if odd else 2))
    refused(tutti.InvalidUsage, "the ranks differ in the shape", hvd.synchronize, handle)
    refused(tutti.InvalidUsage, "the ranks differ in the shape", hvd.synchronize, handle)  # once more is the same
    with held():
        first = hvd.allreduce_async(ones(), name="twice")
        refused(
            tutti.InvalidUsage, "allreduce of 'twice' is under way already", hvd.allreduce_async, ones(), name="twice"
        )
        assert not hvd.poll(first)
    hvd.synchronize(first)
    assert hvd.poll(first)


def from_threads():
    """Each thread has names of its own; their operations interleave otherwise on each rank."""
    failures = []

    def work(number):
        try:
            for again in range(10):
                result = hvd.allreduce(torch.full((10,), float(number + again)), name=f"thread {number}", op=hvd.Sum)
                assert (result == (number + again) * hvd.size()).all()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def process_sets():
    rank = hvd.rank()
    first = hvd.add_process_set([0, 1])
    second = hvd.add_process_set(hvd.ProcessSet([2, 0]))
    assert (second.ranks, second.size(), second.included()) == ((0, 2), 2, rank != 1)
    for _ in range(3):
        if rank < 2:
            assert hvd.allreduce(ones(1) * rank, name="x", op=hvd.Sum, process_set=first).item() == 1
        if second.included():
            assert second.rank() == rank // 2
            assert hvd.allgather(torch.tensor([rank]), process_set=second).tolist() == [0, 2]
            assert hvd.broadcast(torch.tensor([rank]), 2, name="y", process_set=second).item() == 2
            assert hvd.broadcast_object(rank, 2, process_set=second) == 2
            assert hvd.reducescatter(torch.arange(4), op=hvd.Sum, process_set=second).tolist() == [
                2 * rank,
                2 * rank + 2,
            ]
            hvd.barrier(second)
        else:
            refused(
                tutti.InvalidUsage,
                "rank 1 is not in the process set of ranks 0, 2",
                hvd.allreduce,
                ones(),
                process_set=second,
            )
    assert hvd.allreduce(ones(1), name="x", op=hvd.Sum).item() == 3
    hvd.barrier()
    assert hvd.remove_process_set(first) and not hvd.remove_process_set(hvd.global_process_set)
    refused(tutti.InvalidUsage, "the process set of ranks 0, 1 is not known", hvd.allreduce, ones(), process_set=first)
    refused(tutti.InvalidArgument, "is not one of ranks from 0 to 2", hvd.add_process_set, [0, 3])


def who():
    assert (hvd.rank(), hvd.size()) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    assert (hvd.local_rank(), hvd.local_size()) == (hvd.rank(), hvd.size())
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert hvd.is_initialized()
    hvd.init()  # does nothing
    assert not (hvd.mpi_built() or hvd.nccl_built() or hvd.gloo_built() or hvd.cuda_built())


def again():
    """Leaving in good order, and joining once more; on a communicator of the caller's, too."""
    rank, size = hvd.rank(), hvd.size()
    hvd.barrier()
    hvd.shutdown()
    hvd.shutdown()
    assert not hvd.is_initialized()
    refused(tutti.InvalidUsage, "call tutti.hvd.init() first", hvd.size)
    with tutti.init() as comm:
        refused(tutti.InvalidArgument, "comm is [0, 1]: it is a tutti.Communicator", hvd.init, [0, 1])
        refused(tutti.InvalidArgument, "they are whole numbers", hvd.init, comm, process_sets=[[0.5]])
        refused(tutti.InvalidArgument, "is not one of ranks from 0 to 1", hvd.init, comm, process_sets=[[0], [0, 7]])
        assert not hvd.is_initialized()
        hvd.init(comm, process_sets=[[0], hvd.ProcessSet([0, 1])])
        assert (hvd.rank(), hvd.size(), hvd.local_size()) == (rank, size, size)
        assert hvd.allreduce(ones(1), op=hvd.Sum).item() == size
        of_before = hvd.add_process_set([0])
        hvd.barrier()
        hvd.shutdown()
        comm.barrier()
    hvd.init(process_sets=[[0, 1]])
    refused(tutti.InvalidUsage, "is not known", hvd.allreduce, ones(), process_set=of_before)


def main():
    hvd.init(cycle_time=0.0005, fusion_threshold=2**20)
    for case in sys.argv[1:]:
        globals()[case]()
        hvd.barrier()
    hvd.shutdown()
    print("well")


main()
