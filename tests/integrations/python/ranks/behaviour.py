"""What the package does beside moving data. Usage: behaviour.py CASE"""
import gc
import os
import sys
import threading
import time
import types
import urllib.error
import urllib.request

import numpy

import tutti


def refused(kind, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert isinstance(error, tutti.Error) and error.code == kind.code, (error, error.code)
        assert text in str(error), f"{text!r} is not in {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def bad_input(comm):
    ones = numpy.ones((4, 4), "float32")
    wrong = tutti.InvalidArgument
    refused(wrong, "not C-contiguous", comm.all_reduce, ones.T)
    refused(wrong, "not C-contiguous", comm.all_reduce, ones[:, 0])
    refused(wrong, "read-only", comm.all_reduce, b"abcd")
    fixed = ones.copy()
    fixed.flags.writeable = False
    refused(wrong, "read-only", comm.all_reduce, fixed)
    refused(wrong, "complex64, which no operation takes", comm.all_reduce, ones.astype("complex64"))
    refused(wrong, ">f4, which no operation takes", comm.all_reduce, ones.astype(">f4"))
    refused(wrong, "[('a', '<f4')], which no operation takes", comm.all_reduce, numpy.zeros(2, [("a", "f4")]))
    refused(wrong, "object, which no operation takes", comm.all_reduce, numpy.array([1, "a"], object))
    refused(wrong, "not C-contiguous", comm.all_reduce, numpy.ones(3), numpy.broadcast_to(numpy.ones(1), 3))
    refused(wrong, "not C-contiguous", comm.all_reduce, memoryview(bytearray(8))[::2])
    refused(wrong, "read-only", comm.all_reduce, memoryview(b"abcd"))
    refused(wrong, "neither a numpy array nor speaks DLPack", comm.all_reduce, [1, 2])
    refused(wrong, "send is of float32, recv of float64", comm.all_reduce, ones, ones.astype("float64"))
    refused(wrong, "send has 16 elements, recv 4", comm.all_reduce, ones, ones[0].copy())
    refused(wrong, "it holds one send a rank", comm.all_gather, ones, ones.copy())
    refused(wrong, "cannot share evenly", comm.all_to_all, numpy.ones(2 * comm.size + 1))
    refused(wrong, "choose one of sum", comm.all_reduce, ones, op="mean")
    refused(wrong, "recv_counts has 1 entries", comm.all_gather, ones, ones.copy(), recv_counts=[16])
    refused(wrong, "root is 99", comm.broadcast, ones, 99)
    refused(wrong, "algorithm", comm.all_reduce, ones, algorithm="hearsay")
    refused(wrong, "operation_timeout is 0", comm.duplicate, operation_timeout=0)
    for setting, value, text in (("channels", 2.5, "channels is 2.5: it is a whole number, or text"),
                                 ("encrypt", 1, "encrypt is 1: it is True or False"),
                                 ("join_timeout", "long", "join_timeout is 'long': it is a number"),
                                 ("name", 5, "name is 5: it is text")):
        refused(wrong, text, comm.duplicate, **{setting: value})
    refused(wrong, "unique id has 3 bytes", tutti.Communicator.join, 2, b"abc", 0)
    no_memory(comm)
    comm.all_reduce(ones)
    assert (ones == comm.size).all()


def no_memory(comm):
    """What looks like an array, and would be sent or lost otherwise than it looks."""
    wrong, target = tutti.InvalidArgument, numpy.zeros(())
    for scalar in (numpy.float64(3), numpy.int8(3), numpy.bool_(True)):
        refused(wrong, "is a scalar of numpy", comm.all_reduce, scalar)
        refused(wrong, "is a scalar of numpy", comm.broadcast, scalar)
        refused(wrong, "is a scalar of numpy", comm.all_reduce, scalar, numpy.array(scalar))
    masked = numpy.ma.masked_array([1.0, 2.0], [False, True])
    refused(wrong, "is a masked array", comm.all_reduce, masked)
    comm.all_reduce(masked.filled(5), masked.data)
    assert masked.data.tolist() == [comm.size, 5 * comm.size]
    shown = types.SimpleNamespace(__array_interface__={"data": (target.ctypes.data, 0), "typestr": "<f8", "shape": (),
                                                       "version": 3})
    comm.all_reduce(numpy.array(1.0), shown)  # has the interface and nothing else
    assert target == comm.size
    shown.__array_interface__["typestr"] = "|V8"
    refused(wrong, "is of |V8, which no operation takes", comm.all_reduce, shown)
    comm.all_reduce(numpy.array(3.0), target)
    assert target == 3 * comm.size
    comm.all_reduce(target)
    assert target == 3 * comm.size ** 2


def freed(comm):
    child = comm.duplicate(name="child")
    child.destroy()
    child.destroy()
    assert not child.is_open
    refused(tutti.InvalidUsage, "has been destroyed or aborted", child.barrier)
    refused(tutti.InvalidUsage, "has been destroyed or aborted", child.stats)


def families(comm):
    with comm.split(comm.rank % 2, -comm.rank) as half:
        assert half.size == (comm.size + 1 - comm.rank % 2) // 2
        data = numpy.array([comm.rank])
        half.all_reduce(data, op="max")
        assert data[0] % 2 == comm.rank % 2
    assert (comm.split(None if comm.rank else 0) is None) == (comm.rank != 0)
    with comm.split_by_host() as here:
        assert here.size == comm.size
    if comm.size > 1:
        if comm.rank != comm.size - 1:
            with comm.shrink([comm.size - 1]) as fewer:
                assert fewer.size == comm.size - 1 and fewer.rank == comm.rank
    comm.barrier()


def by_id(comm):
    text = numpy.frombuffer(bytearray(tutti.unique_id() if comm.rank == 0 else 128), "uint8")
    comm.broadcast(text)
    with tutti.Communicator.join(comm.size, text.tobytes(), comm.rank, name="by id") as joined:
        joined.barrier()
    grown(comm)


def grown(comm):
    """All but the last form one, which the last joins."""
    last = comm.size - 1
    few = comm.split(None if comm.rank == last else 0)
    text = numpy.zeros(128, "uint8")
    if comm.rank == 0:
        text[:] = list(few.unique_id_to_grow())
    comm.broadcast(text)
    if few is None:
        all_of_us = tutti.Communicator.join_growing(comm.size, text.tobytes(), last)
    else:
        all_of_us = few.grow(comm.size, text.tobytes() if comm.rank == 0 else None)
    data = numpy.ones(5)
    all_of_us.all_reduce(data)
    assert (data == comm.size).all()


def background(comm):
    """Requests keep their buffers, also when nobody keeps the requests."""
    wanted = sum(range(1, comm.size + 1))
    results = [numpy.zeros(100_000, "int64") for _ in range(20)]
    requests = [comm.all_reduce(numpy.full(100_000, comm.rank + 1), out, async_op=True) for out in results]
    del requests[::2]
    gc.collect()
    for request in requests:
        request.wait(timeout=60)
        assert request.test()
    comm.barrier()
    assert all((out == wanted).all() for out in results)


def waits(comm):
    aside = comm.duplicate()  # calls of one communicator take turns
    if comm.rank == 0:
        data = numpy.zeros(1)
        request = comm.recv(data, 1, async_op=True)
        assert not request.test()
        refused(tutti.Timeout, "goes on", request.wait, timeout=0.05)
        aside.barrier()
        request.wait()
        assert data[0] == 7
    else:
        aside.barrier()
        comm.send(numpy.full(1, 7.0), 0)


def threads(comm):
    """Others run while a call waits: here they make the other side of it possible."""
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    if comm.rank == 0:
        while len(ticks) < 100:
            time.sleep(0.001)
    comm.barrier()
    done.set()
    thread.join()
    assert comm.rank == 0 or len(ticks) > 1
    data = numpy.ones(1000)
    worker = threading.Thread(target=comm.all_reduce, args=(data,))
    worker.start()
    worker.join()
    assert (data == comm.size).all()


def operators(comm):
    for name, dtype in (("avg", "float64"), ("min", "int16"), ("prod", "float32"), ("band", "uint8"), ("bxor", "bool")):
        data = numpy.array([comm.rank + 1]).astype(dtype)
        comm.all_reduce(data, op=name)
        values = numpy.arange(1, comm.size + 1)
        wanted = {"avg": values.mean(), "min": 1, "prod": values.prod(), "band": numpy.bitwise_and.reduce(values),
                  "bxor": comm.size % 2 == 1}[name]
        assert data[0] == wanted, (name, data, wanted)
    half = comm.premulsum(0.5, "float32")
    data = numpy.full(9, 4, "float32")
    comm.all_reduce(data, op=half)
    assert (data == 2 * comm.size).all()
    refused(tutti.InvalidArgument, "op was made for", comm.all_reduce, numpy.ones(3), op=half)
    factors(comm)


def factors(comm):
    """Of a type that does not hold it none is made of less."""
    for factor, dtype in ((0.5, "int32"), (-1, "uint8"), (300, "int8"), (2.0**63, "int64"), (2**64, "uint64"),
                          (float("nan"), "int32"), (1e300, "float32"), (1e-300, "float32"), (1e6, "float16")):
        refused(tutti.InvalidArgument, f"{dtype} does not hold", comm.premulsum, factor, dtype)
    for factor in (1 + 2j, numpy.complex64(1 + 2j), "2", [1.0]):
        refused(tutti.InvalidArgument, "it is one real number", comm.premulsum, factor, "float32")
    large = 2**53 + 1
    for factor, dtype, value in ((large, "int64", 1), (numpy.uint64(large), "uint64", 1), (-3.0, "int8", 2),
                                 (0.1, "float32", 1), (2**70, "float64", 1)):
        data = numpy.array([value], dtype)
        comm.all_reduce(data, op=comm.premulsum(factor, dtype))
        wanted = numpy.array(factor).astype(dtype) * numpy.array(value, dtype)
        assert data[0] == wanted + wanted + wanted, (factor, dtype, data)


def buffers(comm):
    """Whatever speaks the buffer protocol or DLPack."""
    data = bytearray([comm.rank + 1] * 5)
    comm.all_reduce(data)
    assert data == bytearray([sum(range(1, comm.size + 1))] * 5)
    text = memoryview(bytearray(b"root!" if comm.rank == 0 else b"other"))
    comm.broadcast(text)
    assert bytes(text) == b"root!"
    try:
        import torch
    except ImportError:
        return
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.int16):
        tensor = torch.ones(3, 5).to(dtype)
        comm.all_reduce(tensor)
        assert (tensor == (torch.ones(3, 5) * comm.size).to(dtype)).all()
    parameter = torch.nn.Parameter(torch.ones(4))
    refused(tutti.InvalidArgument, "requires a gradient", comm.all_reduce, parameter)
    refused(tutti.InvalidArgument, "not C-contiguous", comm.all_reduce, torch.ones(3, 4).t())
    for negated in (torch._neg_view(torch.ones(3)), torch.ones(3, dtype=torch.complex64).conj().imag):
        refused(tutti.InvalidArgument, "hand over tensor.resolve_neg()", comm.all_reduce, negated)
        refused(tutti.InvalidArgument, "hand over tensor.resolve_neg()", comm.all_reduce, negated, torch.ones(3))
    comm.all_reduce(parameter.detach())
    assert (parameter == comm.size).all()


def status_of(page):
    """None where nobody listens."""
    try:
        with urllib.request.urlopen(page) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return None


def told(comm):
    comm.all_reduce(numpy.ones(1000, "float32"))
    stats = tutti.stats()
    assert all(isinstance(value, float) for value in stats.values())
    assert stats["world_all_reduce_bytes"] == 4000 and stats["world_all_reduce_operations"] == 1
    assert stats["bytes"] == 4000 and stats["world_size"] == comm.size
    assert f'tutti_bytes_total{{communicator="world",rank="{comm.rank}",operation="all_reduce"}} 4000\n' in tutti.prometheus()
    assert stats["world_bus_bytes"] == 4000 * 2 * (comm.size - 1) / comm.size and stats["bus_bandwidth"] > 0
    with tutti.serve_prometheus(0) as endpoint:
        page = f"http://127.0.0.1:{endpoint.port}"
        with urllib.request.urlopen(f"{page}/metrics") as answer:
            assert answer.read().decode() == tutti.prometheus()
        assert status_of(f"{page}/other") == 404
        refused(tutti.InvalidArgument, "a port of its own", tutti.serve_prometheus, endpoint.port)
    assert status_of(f"{page}/metrics") is None, "it is closed"
    lines = tutti.explain("all-reduce", 1 << 20, "float32").splitlines()
    assert lines[0].startswith("chosen: ") and any(line.startswith("next: ") for line in lines), lines
    told = comm.explain_json("all-reduce", 1 << 20)
    assert told["operation"] == "all_reduce" and told["bytes"] == 4 << 20 and told["ranks"] == comm.size, told
    assert lines[0].startswith(f"chosen: {told['choice']['algorithm']} over "), told
    assert sum(len(link["ranks"]) for link in told["links"]) == comm.size - 1, told
    forced = comm.duplicate(algorithm="tree").explain("all-reduce", 10)
    assert forced.startswith("chosen: tree"), forced
    several = comm.duplicate(channels="2;all_reduce:3")
    assert " over 3 channels" in several.explain("all-reduce", 10) and " over 2 channels" in several.explain("broadcast", 10)
    refused(tutti.InvalidArgument, "choose one of all-reduce", tutti.explain, "allreduce", 1)
    folder = sys.argv[2]
    path = tutti.dump(folder)
    assert "all-reduce" in open(path, encoding="utf-8").read()
    tutti.write_prometheus(os.path.join(folder, f"rank{comm.rank}.prom"))
    assert open(os.path.join(folder, f"rank{comm.rank}.prom"), encoding="utf-8").read().startswith("# HELP tutti_")


def forked(comm):
    comm.barrier()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            comm.barrier()
        except tutti.InvalidUsage as error:
            status = 0 if "fork" in str(error) else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    comm.barrier()


def exported(comm):
    """What is set stays, and the rest all agree on."""
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    assert tutti.export_env(comm)["MASTER_ADDR"] == "127.0.0.1", "all are on one host"
    del os.environ["MASTER_PORT"]
    os.environ["MASTER_ADDR"] = f"10.0.0.{comm.rank}"
    told = tutti.export_env(comm)
    assert told["MASTER_ADDR"] == f"10.0.0.{comm.rank}", told
    ports = numpy.zeros(comm.size, "int64")
    comm.all_gather(numpy.array([int(told["MASTER_PORT"])]), ports)
    assert len(set(ports)) == 1, ports


def groups(comm):
    """One that ends by an exception has sent nothing; what cannot end inside of one is refused there."""
    peer, one = 1 - comm.rank, numpy.ones(1)
    try:
        with tutti.group():
            comm.send(numpy.full(100_000, -1.0), peer)
            comm.recv(numpy.ones((4, 4)).T, peer)
    except tutti.InvalidArgument as error:
        assert "not C-contiguous" in str(error), error
    else:
        raise AssertionError("no error")
    got = numpy.zeros(1)
    with tutti.group():
        sending = comm.send(one, peer, async_op=True)
        comm.recv(got, peer)
        refused(tutti.InvalidUsage, "wait for it there", sending.wait)
        refused(tutti.InvalidUsage, "outside of the block", comm.destroy)
    sending.wait()
    assert got[0] == 1 and comm.is_open

    def split():
        with tutti.group():
            comm.split(0)

    refused(tutti.InvalidUsage, "outside of the block", split)
    comm.all_reduce(one)
    assert one[0] == comm.size


def main():
    with tutti.init() as comm:
        globals()[sys.argv[1]](comm)
    print("well")


main()
