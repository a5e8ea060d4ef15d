"""What the backend does beside moving data, a case each."""
import os
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

import tutti_torch
from case import called, main, raises, same, say

ERROR = dist.DistBackendError


def size():
    return dist.get_world_size()


def self():
    return dist.get_rank()


def total():
    return size() * (size() + 1) / 2


def known_by_its_name():
    assert dist.get_backend() == "tutti" and dist.is_backend_available("tutti")
    assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == "tutti"
    assert tutti_torch.version().count(".") == 2


def asynchronous():
    tensors = [torch.full((1000,), self() + 1.0 + i) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, (work, tensor) in reversed(list(enumerate(zip(works, tensors)))):
        assert work.wait() and work.is_completed() and work.is_success()
        same(tensor, torch.full((1000,), total() + i * size()))
        assert work.result()[0].data_ptr() == tensor.data_ptr()
    gone = dist.all_reduce(torch.ones(10_000), async_op=True)  # nobody keeps the tensor
    gone.wait()


def futures():
    tensor = torch.full((8,), self() + 1.0)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    halved = future.then(lambda done: done.value()[0] / 2)
    doubled = halved.then(lambda done: done.value() * 4)
    same(doubled.wait(), torch.full((8,), 2 * total()))
    same(future.value()[0], torch.full((8,), total()))

    def again(done):  # a callback that waits for an operation of its own
        other = done.value()[0].clone()
        dist.all_reduce(other)
        return other

    nested = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(again)
    same(nested.wait(), torch.full((2,), float(size() ** 2)))


def callbacks():
    """One after the other, in the order of the operations, and on few threads; those of others go on where one waits."""
    def threads():
        names = (open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task"))
        return sum(name == "tutti_torch" for name in names)

    group = dist.new_group()
    order = []
    before = threads()
    counted = [dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future().then(lambda done, i=i: order.append(i))
               for i in range(2000)]
    for future in counted:
        future.wait()
    assert order == list(range(2000))
    assert threads() - before <= 3, (before, threads())


def callbacks_that_begin_operations():
    """As those of PowerSGD do. On all ranks in one order, whoever computes longer before."""
    def again(done, i):
        time.sleep(0.003 if i % size() == self() else 0)
        other = done.value()[0] + i
        return dist.all_reduce(other, async_op=True).get_future().wait()[0]

    firsts = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(12)]
    seconds = [work.get_future().then(lambda done, i=i: again(done, i)) for i, work in enumerate(firsts)]
    for i, future in enumerate(seconds):
        same(future.wait(), torch.full((2,), float(size() * (size() + i))))


def a_callback_that_waits_for_a_later_one():
    if self() == 1:
        time.sleep(0.2)  # the others' operations are under way when they get their callbacks
    happened = threading.Event()
    first, second = (dist.all_reduce(torch.ones(2), async_op=True).get_future() for _ in range(2))
    second = second.then(lambda done: happened.set())
    first = first.then(lambda done: happened.wait())
    assert first.wait() is True and second.wait() is None


def a_callback_that_waits_for_its_caller():
    """Who makes a synchronous call meanwhile is not held up."""
    if self() == 1:
        time.sleep(0.2)  # the first operation of rank 0 is under way when it gets its callback
    called = threading.Event()
    first = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    if self() == 0:
        first = first.then(lambda done: called.wait())
    dist.all_reduce(torch.ones(2))
    called.set()
    first.wait()


def synchronized():
    """Which PyTorch asks for with Python's lock, while a callback wants it."""
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    future = work.get_future().then(lambda done: done.value()[0].sum().item())
    work.synchronize()
    assert future.wait() == 1000 * size()


def destroyed_in_a_callback():
    group = dist.new_group()
    begun = time.monotonic()
    future = dist.all_reduce(torch.ones(2), group=group, async_op=True).get_future()
    future.then(lambda done: dist.destroy_process_group(group)).wait()
    say(f"destroyed in a callback after {time.monotonic() - begun:.2f} s")


def coalesced():
    tensors = [torch.full((i + 1,), self() + 1.0) for i in range(5)]
    with _coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        same(tensor, torch.full(tensor.shape, total()))
    outputs = [torch.zeros(size() * (i + 1)) for i in range(3)]
    with _coalescing_manager():
        for i, output in enumerate(outputs):
            dist.all_gather_into_tensor(output, torch.full((i + 1,), float(self())))
    for i, output in enumerate(outputs):
        same(output, torch.arange(float(size())).repeat_interleave(i + 1))
    outputs = [torch.zeros(i + 1) for i in range(3)]
    with _coalescing_manager():
        for i, output in enumerate(outputs):
            dist.reduce_scatter_tensor(output, torch.arange(float(size())).repeat_interleave(i + 1))
    for i, output in enumerate(outputs):
        same(output, torch.full((i + 1,), float(size() * self())))
    ones = [torch.ones(3), torch.ones(4)]
    dist.all_reduce_coalesced(ones)
    same(torch.cat(ones), torch.full((7,), float(size())))


def between_start_and_end():
    """Calls of several kinds as one work."""
    group = dist.group.WORLD
    cpu = torch.device("cpu")
    one, other = torch.full((4,), self() + 1.0), torch.full((3,), float(self()))
    group._start_coalescing(cpu)
    group.allreduce([one])
    group.broadcast(other, 0)
    work = group._end_coalescing(cpu)
    assert work.wait() and work.is_completed()
    same(one, torch.full((4,), total()))
    same(other, torch.zeros(3))
    raises(RuntimeError, "without a startCoalescing", group._end_coalescing, cpu)


def objects():
    mine = {"rank": self(), "text": "x" * (1 + 1000 * self())}
    everyone = [None] * size()
    dist.all_gather_object(everyone, mine)
    assert [one["rank"] for one in everyone] == list(range(size())) and len(everyone[1]["text"]) == 1001
    listed = [mine, None] if self() == 1 else [None, None]
    dist.broadcast_object_list(listed, 1)
    assert listed[0]["rank"] == 1 and listed[1] is None
    gathered = [None] * size() if self() == 0 else None
    dist.gather_object(mine, gathered, 0)
    assert self() != 0 or [one["rank"] for one in gathered] == list(range(size()))
    taken = [None]
    dist.scatter_object_list(taken, [f"for {rank}" for rank in range(size())] if self() == 0 else None, 0)
    assert taken == [f"for {self()}"]
    if self() == 0:
        dist.send_object_list([1, "two"], 1)
    elif self() == 1:
        got = [None, None]
        dist.recv_object_list(got, 0)
        assert got == [1, "two"]


def groups():
    """Subsets, and several at once, each with operations under way."""
    halves = [dist.new_group([rank for rank in range(size()) if rank % 2 == parity]) for parity in range(min(2, size()))]
    others = [dist.new_group(timeout=timedelta(seconds=50)) for _ in range(2)]
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=halves[self() % 2])
    assert tensor.item() == len(range(self() % 2, size(), 2))
    tensors = [torch.full((5000,), self() + 1.0) for _ in range(6)]
    every = [dist.group.WORLD, *others]
    order = every if self() % 2 == 0 else every[::-1]  # groups have nothing to do with each other
    works = [dist.all_reduce(tensors[2 * every.index(group) + i], group=group, async_op=True) for group in order for i in range(2)]
    for work in works:
        work.wait()
    for tensor in tensors:
        same(tensor, torch.full((5000,), total()))
    for group in others:
        dist.destroy_process_group(group)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size()


def a_part_of_a_group():
    """What ProcessGroup.split_group makes: of those that are listed, here all but the first, or the only two."""
    ranks = list(range(min(1, size() - 2), size()))
    part = dist.group.WORLD.split_group(ranks, timedelta(seconds=30), None, "part", "a part")
    if self() not in ranks:
        assert part is None
        return
    assert (part.size(), part.rank()) == (len(ranks), ranks.index(self()))
    tensor = torch.ones(2)
    part.allreduce([tensor]).wait()
    same(tensor, torch.full((2,), float(len(ranks))))


def sequence_numbers():
    group = dist.new_group()
    before = called(group)
    for _ in range(3):
        dist.all_reduce(torch.ones(1), group=group)
    assert called(group) == before + 3
    everyone = [None] * size()
    dist.all_gather_object(everyone, called(group))
    assert len(set(everyone)) == 1


def barriers():
    dist.barrier()
    dist.barrier(async_op=True).wait()
    tutti_torch.monitored_barrier()
    tutti_torch.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=True)


def monitored_barrier_names_who_is_missing():
    group = dist.new_group()
    last = size() - 1
    if self() != last:
        words = f"Rank {last} failed to pass monitoredBarrier in 300 ms"
        raises(ERROR, words, tutti_torch.monitored_barrier, group, timedelta(milliseconds=300))
    dist.barrier()


def a_group_with_too_little_time():
    group = dist.new_group(timeout=timedelta(milliseconds=400))
    if self() == 0:
        text = raises(ERROR, ["tutti: all-reduce #0", "within 400 ms", "rank 1"], dist.all_reduce, torch.ones(3), group=group)
        assert "has not come to it" in text, text
        raises(ERROR, "tutti: ", dist.all_reduce, torch.ones(3), group=group)  # for good
    dist.barrier()  # of another group


def one_operation_with_too_little_time():
    group = dist.new_group()
    options = dist.AllreduceOptions()
    options.timeout = timedelta(milliseconds=300)
    if self() == 0:
        work = group.allreduce([torch.ones(3)], options)
        raises(ERROR, ["within 300 ms", "rank 1"], work.wait)
        assert not work.is_success()
    dist.barrier()


def a_wait_that_is_too_short():
    """It is the wait's time that is over, not the operation's: that may still end well."""
    group = dist.new_group()
    tensor = torch.ones(2)
    if self() == 0:
        work = dist.all_reduce(tensor, group=group, async_op=True)
        raises(ERROR, "Operation timed out!", work.wait, timedelta(milliseconds=100))
        dist.barrier()
        assert work.wait()
    else:
        dist.barrier()
        dist.all_reduce(tensor, group=group)
    same(tensor, torch.full((2,), float(size())))


def a_later_timeout_of_a_group():
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    backend.set_timeout(timedelta(milliseconds=350))
    if self() == 0:
        raises(ERROR, "within 350 ms", dist.all_reduce, torch.ones(3), group=group)
    dist.barrier()


def calls_that_do_not_match():
    group = dist.new_group()

    def gather(tensor, group):
        dist.all_gather_into_tensor(torch.zeros(3 * size()), tensor, group)

    call = dist.all_reduce if self() == 0 else gather
    text = raises(ERROR, ["all-reduce", "all-gather"], call, torch.ones(3), group=group)
    assert "rank 0" in text, text
    dist.barrier()


def aborted():
    """From another thread, while a call waits; then nothing works in the group, and all does in others."""
    group = dist.new_group()
    store = dist.distributed_c10d._get_default_store()
    if self() == 0:
        threading.Timer(0.3, group._get_backend(torch.device("cpu")).abort).start()
        raises(ERROR, "tuttiCommAbort", dist.all_reduce, torch.ones(3), group=group)
        raises(ERROR, "the process group was aborted on this rank", dist.all_reduce, torch.ones(3), group=group)
        store.set("aborted", "1")
    else:
        store.wait(["aborted"])
        raises(ERROR, ["rank 0", "tuttiCommAbort"], dist.all_reduce, torch.ones(3), group=group)
    dist.barrier()


def shut_down():
    group = dist.new_group()
    dist.all_reduce(torch.ones(3), group=group)
    group._get_backend(torch.device("cpu")).shutdown()
    raises(ERROR, "has been shut down", dist.all_reduce, torch.ones(3), group=group)


def threads_of_python_go_on():
    """A call that waits holds no lock of Python's."""
    counted = 0
    if self() == 0:
        ended = threading.Event()

        def wait():
            dist.all_reduce(torch.ones(1))
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        while counted < 1000 or not ended.is_set():
            counted += 1
            time.sleep(0)
            if counted == 1000:
                dist.distributed_c10d._get_default_store().set("counted", "1")
        thread.join()
    else:
        dist.distributed_c10d._get_default_store().wait(["counted"])
        dist.all_reduce(torch.ones(1))


def destroyed_and_made_again():
    for time_ in range(3):
        dist.destroy_process_group()
        dist.init_process_group("tutti")
        tensor = torch.full((3,), float(time_ + self()))
        dist.all_reduce(tensor)
        same(tensor, torch.full((3,), float(time_ * size() + size() * (size() - 1) / 2)))


def forked():
    """A child has nothing of its parent's group, and its end changes nothing."""
    child = os.fork()
    if child == 0:
        try:
            raises(RuntimeError, "before the process forked", dist.all_reduce, torch.ones(1))
            dist.destroy_process_group()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size()


def beside_the_package_tutti():
    """Both have a library of tutti; what one counts is not lost in the other."""
    import numpy
    import tutti

    with tutti.Communicator.join(size(), unique_id(tutti), self()) as comm:
        values = numpy.full(4, self() + 1.0)
        comm.all_reduce(values)
        assert (values == total()).all()
        assert comm.stats()["operations"] == 1, comm.stats()
        tensor = torch.full((4,), self() + 1.0)
        dist.all_reduce(tensor)
        same(tensor, torch.full((4,), total()))
        assert comm.stats()["operations"] == 1, "of that communicator only"
    loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libtutti.so" in line}
    assert len(loaded) == 1, f"one library for both, by its name: {loaded}"


def unique_id(tutti):
    told = [tutti.unique_id() if self() == 0 else None]
    dist.broadcast_object_list(told, 0)
    return told[0]


def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(100))
        dist.all_reduce(torch.ones(100), async_op=True).wait()
    names = [event.name for event in profile.events()]
    assert names.count("record_param_comms") == 2, names
    assert "tutti:all_reduce" in names, names


if __name__ == "__main__":
    main(known_by_its_name, asynchronous, futures, callbacks, callbacks_that_begin_operations,
         a_callback_that_waits_for_a_later_one, a_callback_that_waits_for_its_caller, synchronized, destroyed_in_a_callback, coalesced, between_start_and_end, objects, groups, a_part_of_a_group,
         sequence_numbers, barriers, monitored_barrier_names_who_is_missing, a_group_with_too_little_time,
         one_operation_with_too_little_time, a_wait_that_is_too_short, a_later_timeout_of_a_group, calls_that_do_not_match, aborted,
         shut_down, threads_of_python_go_on, destroyed_and_made_again, forked, beside_the_package_tutti, profiled)
