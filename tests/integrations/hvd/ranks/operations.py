"""Every operation on every type, against what one process works out. Usage: operations.py"""

import inspect

import numpy
import torch

import tutti
import tutti.hvd as hvd

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
TYPES = (*FLOATS, *INTEGERS)
OPS = {
    hvd.Sum: lambda all_: all_.sum(0),
    hvd.Product: lambda all_: all_.prod(0),
    hvd.Min: lambda all_: all_.min(0).values,
    hvd.Max: lambda all_: all_.max(0).values,
}


def data(rank, dtype, shape=(3, 5)):
    """Small whole numbers, which every type adds without rounding; each rank has others."""
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(count) * (rank + 1) + rank) % 4).reshape(shape).to(dtype)


def everybody(dtype, shape=(3, 5)):
    return torch.stack([data(rank, dtype, shape) for rank in range(hvd.size())])


def same(got, wanted):
    assert (
        got.dtype == wanted.dtype and got.shape == wanted.shape and torch.equal(got, wanted)
    ), f"{got}\nis not\n{wanted}"


def close(got, wanted):
    torch.testing.assert_close(got, wanted)


def refused(kind, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def reductions():
    for dtype in TYPES:
        for op, work_out in OPS.items():
            wanted = work_out(everybody(dtype).to(torch.int64)).to(dtype)
            name = f"{dtype}.{op.name}"
            own = data(hvd.rank(), dtype)
            same(hvd.allreduce(own, name=name, op=op), wanted)
            same(own, data(hvd.rank(), dtype))  # as it was
            same(hvd.synchronize(hvd.allreduce_async(own, op=op)), wanted)
            assert hvd.allreduce_(own, op=op) is own
            same(own, wanted)
            pair = [data(hvd.rank(), dtype), data(hvd.rank(), dtype, (7,))]
            other = work_out(everybody(dtype, (7,)).to(torch.int64)).to(dtype)
            for got, want in zip(hvd.grouped_allreduce(pair, op=op), (wanted, other)):
                same(got, want)
            hvd.grouped_allreduce_(pair, op=op)
            same(pair[1], other)
    truth = torch.tensor([True, hvd.rank() == 0, False])
    same(hvd.allreduce(truth, op=hvd.Sum), torch.tensor([True, True, False]))
    same(hvd.allreduce(truth, op=hvd.Min), torch.tensor([True, hvd.size() == 1, False]))


def rare_types():
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64):
        own = torch.tensor([1.0, 0.0]).to(dtype)
        same(hvd.allreduce(own, op=hvd.Sum).float(), torch.tensor([float(hvd.size()), 0.0]))
        same(hvd.grouped_allreduce([own, own], op=hvd.Max)[1].float(), own.float())
        same(hvd.allgather(own).float(), own.float().repeat(hvd.size()))
        same(hvd.broadcast(own, 0).float(), own.float())


def averages():
    for dtype in FLOATS:
        wanted = everybody(dtype).double().mean(0).to(dtype)
        close(hvd.allreduce(data(hvd.rank(), dtype)), wanted)
        close(hvd.allreduce(data(hvd.rank(), dtype), average=True, name="old"), wanted)
        same(hvd.allreduce(data(hvd.rank(), dtype), average=False), everybody(dtype).sum(0))
        scaled = hvd.allreduce(data(hvd.rank(), dtype), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
        same(scaled, 2 * everybody(dtype).sum(0))
        pair = hvd.grouped_allreduce(
            [data(hvd.rank(), dtype)] * 2, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5
        )
        same(pair[1], everybody(dtype).sum(0))
    same(hvd.allreduce(torch.tensor([2, -3]) * hvd.size()), torch.tensor([2, -3]) * hvd.size())
    same(hvd.allreduce(torch.tensor([2, 4]), op=hvd.Sum, postscale_factor=1.5), torch.tensor([3, 6]) * hvd.size())
    refused(tutti.InvalidArgument, "a tensor of bool, which has no average", hvd.allreduce, torch.tensor([True]))


def exact_factors():
    """Of whole numbers of any size, by whole factors and by what divides; float8 by way of float."""
    ranks = hvd.size()
    large = torch.tensor([2**59 + 1, -(2**59) - 1, 2**53 + 1, -7, 7, 0])
    same(hvd.allreduce(large), large)
    same(hvd.allreduce(large * ranks, op=hvd.Sum, postscale_factor=1 / ranks**2), large)
    same(hvd.allreduce(large, op=hvd.Max, prescale_factor=3, postscale_factor=-1), large * -3)
    third = torch.tensor([value // 3 if value > 0 else -(-value // 3) for value in large.tolist()])
    same(hvd.allreduce(large, op=hvd.Min, postscale_factor=-1 / 3), -third)
    pair = hvd.grouped_allreduce([large, large], op=hvd.Max, prescale_factor=0.5)
    same(pair[1], torch.tensor([2**58, -(2**58), 2**52, -3, 3, 0]))
    same(hvd.reducescatter(large.repeat(ranks), op=hvd.Max, prescale_factor=2.0), large * 2)
    same(
        hvd.allreduce(torch.tensor([-128, 100], dtype=torch.int8), op=hvd.Max, postscale_factor=1 / 128),
        torch.tensor([-1, 0], dtype=torch.int8),
    )
    same(hvd.allreduce(torch.tensor([10, -10]), op=hvd.Max, postscale_factor=0.7), torch.tensor([7, -7]))
    most = torch.tensor([2**64 - 1, 9], dtype=torch.uint64)
    same(
        hvd.allreduce(most, op=hvd.Max, postscale_factor=1 / 3), torch.tensor([(2**64 - 1) // 3, 3], dtype=torch.uint64)
    )
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        got = hvd.allreduce(torch.tensor([1.0, 3.0]).to(dtype), op=hvd.Max, prescale_factor=2.0, postscale_factor=0.25)
        same(got.float(), torch.tensor([0.5, 1.5]))


def negated():
    """Views whose memory has the other sign."""
    rank, ranks = hvd.rank(), hvd.size()
    rows = torch.arange(float(2 * ranks)).reshape(ranks, 2)
    for view in (torch._neg_view(-rows), torch.complex(torch.zeros_like(rows), -rows).conj().imag):
        assert view.is_neg()
        same(hvd.allreduce(view, op=hvd.Sum), rows * ranks)
        same(hvd.broadcast(view, 0), rows)
        same(hvd.allgather(view), rows.repeat(ranks, 1))
        same(hvd.alltoall(view), rows[rank].repeat(ranks, 1))
        same(hvd.reducescatter(view, op=hvd.Max), rows[rank : rank + 1])
        same(hvd.allreduce_(view, op=hvd.Sum), rows * ranks)
        same(view.resolve_neg(), rows * ranks)


def compressed():
    values = torch.tensor([1.0, 2.5, -3.0]) * (hvd.rank() + 1)
    factor = sum(range(1, hvd.size() + 1))
    for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
        got = hvd.allreduce(values, op=hvd.Sum, compression=compression)
        assert got.dtype == torch.float32
        close(got, torch.tensor([1.0, 2.5, -3.0]) * factor)
    tiny = torch.full((4,), 1 + 2.0**-20)
    assert (hvd.allreduce(tiny, compression=hvd.Compression.fp16) == 1).all()
    assert (hvd.allreduce(tiny) != 1).all()
    same(hvd.allreduce(torch.tensor([2**30]), op=hvd.Max, compression=hvd.Compression.fp16), torch.tensor([2**30]))


def moves():
    ranks, rank = hvd.size(), hvd.rank()
    for dtype in (*TYPES, torch.bool):
        parts = [data(r, dtype, (r, 2)) for r in range(ranks)]  # the first gives none
        for name in (None, f"gather.{dtype}", f"gather.{dtype}"):
            same(hvd.allgather(parts[rank], name=name), torch.cat(parts))
        same(
            hvd.synchronize(hvd.allgather_async(data(rank, dtype, (2,)))),
            torch.cat([data(r, dtype, (2,)) for r in range(ranks)]),
        )
        for root in range(ranks):
            own = data(rank, dtype)
            same(hvd.broadcast(own, root), data(root, dtype))
            same(own, data(rank, dtype))
            same(hvd.synchronize(hvd.broadcast_async(own, root)), data(root, dtype))
            assert hvd.broadcast_(own, root) is own
            same(own, data(root, dtype))
        all_sent = [data(r, dtype, (2 * ranks, 3)) for r in range(ranks)]
        same(hvd.alltoall(all_sent[rank]), torch.cat([sent[2 * rank : 2 * rank + 2] for sent in all_sent]))


def uneven():
    """Rank r sends r + to rows to rank `to`."""
    ranks, rank = hvd.size(), hvd.rank()
    splits = [[r + to for to in range(ranks)] for r in range(ranks)]
    parts = [data(r, torch.float32, (sum(splits[r]), 2)).split(splits[r]) for r in range(ranks)]
    got, counts = hvd.alltoall(torch.cat(parts[rank]), torch.tensor(splits[rank]), name="uneven")
    same(got, torch.cat([parts[r][rank] for r in range(ranks)]))
    assert counts.tolist() == [splits[r][rank] for r in range(ranks)]
    got, _ = hvd.synchronize(hvd.alltoall_async(torch.cat(parts[rank]), splits[rank], name="uneven"))
    same(got, torch.cat([parts[r][rank] for r in range(ranks)]))
    empty, counts = hvd.alltoall(torch.zeros(0, 4), [0] * ranks)
    assert empty.shape == (0, 4) and counts.tolist() == [0] * ranks


def scattered():
    ranks, rank = hvd.size(), hvd.rank()
    for dtype in TYPES:
        for rows in (2 * ranks, 2 * ranks + 1, 1):
            shares = [rows // ranks + (r < rows % ranks) for r in range(ranks)]
            total = everybody(torch.int64, (rows, 3)).sum(0).to(dtype)
            wanted = total.split(shares)[rank]
            same(hvd.reducescatter(data(rank, dtype, (rows, 3)), op=hvd.Sum), wanted)
            same(
                hvd.synchronize(
                    hvd.reducescatter_async(
                        data(rank, dtype, (rows, 3)), op=hvd.Sum, prescale_factor=2, postscale_factor=0.5
                    )
                ),
                wanted,
            )
    close(
        hvd.reducescatter(data(rank, torch.float32, (2 * ranks, 3))),
        everybody(torch.float32, (2 * ranks, 3)).mean(0).split([2] * ranks)[rank],
    )


def shapes():
    """No dimension, no element, and memory that is not contiguous."""
    ranks = hvd.size()
    same(hvd.allreduce(torch.tensor(2.0), op=hvd.Sum), torch.tensor(2.0 * ranks))
    same(hvd.allreduce(torch.zeros(0, 3)), torch.zeros(0, 3))
    same(hvd.allgather(torch.zeros(0, 3)), torch.zeros(0, 3))
    base = torch.arange(12.0).reshape(3, 4)
    same(hvd.allreduce(base.T, op=hvd.Sum), base.T * ranks)
    hvd.allreduce_(base[:, 1], op=hvd.Sum)
    same(base[:, 1], torch.tensor([1.0, 5.0, 9.0]) * ranks)
    same(base[:, 0], torch.tensor([0.0, 4.0, 8.0]))
    parameter = torch.nn.Parameter(torch.full((2,), float(hvd.rank())))
    hvd.broadcast_(parameter, hvd.size() - 1)
    same(parameter.detach(), torch.full((2,), float(hvd.size() - 1)))
    large = torch.full((300_001,), float(hvd.rank()))
    same(hvd.allreduce(large, op=hvd.Max), torch.full_like(large, hvd.size() - 1))


def gradients():
    """What backward() gives is what the whole job's loss, written down in one process, gives."""
    ranks, rank = hvd.size(), hvd.rank()
    own = data(rank, torch.float64).requires_grad_()
    weights = [data(r, torch.float64) + 1 for r in range(ranks)]
    total = torch.stack(weights).sum(0)
    hvd.allreduce(own, name="g").mul(weights[rank]).sum().backward()
    close(own.grad, total / ranks)
    own.grad = None
    first, second = hvd.grouped_allreduce([own, 2 * own], name="gg", op=hvd.Sum)
    (first + second).mul(weights[rank]).sum().backward()
    close(own.grad, 3 * total)
    own.grad = None
    hvd.broadcast(own, 0).mul(weights[rank]).sum().backward()
    close(own.grad, total if rank == 0 else torch.zeros_like(total))
    own.grad = None
    hvd.allgather(own).mul(torch.cat(weights)).sum().backward()
    close(own.grad, weights[rank] * ranks)
    own.grad = None
    rows = data(rank, torch.float64, (2 * ranks, 3)).requires_grad_()
    hvd.reducescatter(rows, op=hvd.Sum).mul(rank + 1.0).sum().backward()
    close(rows.grad, torch.repeat_interleave(torch.arange(1.0, ranks + 1).double(), 2).unsqueeze(1).expand(-1, 3))
    rows.grad = None
    hvd.alltoall(rows).mul(rank + 1.0).sum().backward()
    close(rows.grad, torch.repeat_interleave(torch.arange(1.0, ranks + 1).double(), 2).unsqueeze(1).expand(-1, 3))
    refused(
        tutti.InvalidUsage, "no gradient of a reduction by Max", lambda: hvd.allreduce(own, op=hvd.Max).sum().backward()
    )


def objects():
    rank, ranks = hvd.rank(), hvd.size()
    assert hvd.allgather_object({"rank": rank, "text": "x" * rank}) == [
        {"rank": r, "text": "x" * r} for r in range(ranks)
    ]
    for root in range(ranks):
        assert hvd.broadcast_object([root, None] if rank == root else "not this", root, name="object") == [root, None]
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(rank)
    hvd.broadcast_parameters(model.state_dict(), root_rank=ranks - 1)
    assert all((parameter == ranks - 1).all() for parameter in model.parameters())
    hvd.broadcast_parameters(model.named_parameters(), root_rank=0)


WRONG = {
    "tensor": (5, None, "text", [1.0], torch.ones(2, device="meta"), torch.ones(2, 2).to_sparse()),
    "name": (5, b"text", ["a"], object()),
    "process_set": (0, None, "all", [0]),
    "op": ("sum", 1, object()),
    "prescale_factor": ("2", None, 1j, [1.0, 2.0], float("nan"), float("inf"), 2**53 + 1),
    "root_rank": (0.0, None, "0", -1, 99, torch.tensor([0, 0])),
    "splits": (3, "11", [0.5], [None], [-1, 1]),
}
WRONG["postscale_factor"] = WRONG["prescale_factor"]
WRONG["tensors"] = [5, None, torch.ones(2), *([torch.ones(2), wrong] for wrong in WRONG["tensor"])]
"""Of each argument values that no call takes."""


def each_argument_that_is_wrong():
    """Every operation refuses them in words, and goes on being usable."""
    right = {"tensor": torch.ones(2, 2), "tensors": [torch.ones(2, 2)], "root_rank": 0}
    for call in (getattr(hvd, name) for name in hvd.__all__):
        wanted = inspect.signature(call).parameters if inspect.isfunction(call) else {}
        given = {key: value for key, value in right.items() if key in wanted}
        for key in set(wanted) & set(WRONG) if "tensor" in given or "tensors" in given else ():
            for wrong in WRONG[key]:
                try:
                    call(**{**given, key: wrong})
                except tutti.InvalidArgument as error:
                    assert str(error)
                else:
                    raise AssertionError(f"{call.__name__} takes {key}={wrong!r}")
    with_bool = {"op": hvd.Sum, "prescale_factor": 2}
    refused(tutti.InvalidArgument, "no factor can scale", hvd.allreduce, torch.tensor([True]), **with_bool)


def numbers_of_others():
    """Whole numbers need not be Python's own."""
    one = torch.ones(hvd.size())
    same(hvd.broadcast(one, numpy.int64(0)), one)
    same(hvd.broadcast(one, torch.tensor(0)), one)
    got, _ = hvd.alltoall(one, numpy.ones(hvd.size(), "int32"))
    same(got, one)
    same(hvd.allreduce(one, op=hvd.Max, prescale_factor=numpy.float32(2), postscale_factor=torch.tensor(2)), 4 * one)
    same(hvd.allreduce(one, average=0), hvd.size() * one)
    several = hvd.grouped_allreduce(torch.nn.ParameterList([one, one]), op=hvd.Sum)
    same(several[1], hvd.size() * one)
    everybody_here = hvd.add_process_set(hvd.ProcessSet(numpy.arange(hvd.size())))
    same(hvd.allreduce(one, process_set=everybody_here), one)
    hvd.remove_process_set(everybody_here)


def refusals():
    """On one rank alone: nobody else is disturbed, nor does the count of calls without names come out of step."""
    if hvd.rank() > 0:
        return
    one = torch.ones(2, 2)
    refused(NotImplementedError, "no Adasum", hvd.allreduce, one, op=hvd.Adasum)
    refused(tutti.InvalidArgument, "choose one of Average", hvd.allreduce, one, op="sum")
    refused(tutti.InvalidArgument, "give op alone", hvd.allreduce, one, average=True, op=hvd.Sum)
    refused(tutti.InvalidArgument, "complex64", hvd.allreduce, one.to(torch.complex64))
    refused(tutti.InvalidArgument, "it takes dense ones", hvd.allreduce, one.to_sparse())
    refused(tutti.InvalidArgument, "without dimensions", hvd.allgather, torch.tensor(1.0))
    refused(tutti.InvalidArgument, "root_rank is 99", hvd.broadcast, one, 99)
    refused(tutti.InvalidArgument, "root_rank is -1", hvd.broadcast_object, one, -1)
    refused(tutti.InvalidArgument, "splits are (9,)", hvd.alltoall, one, [9])
    refused(tutti.InvalidArgument, "one at least", hvd.grouped_allreduce, [])
    refused(tutti.InvalidArgument, "whose elements share memory", hvd.allreduce_, torch.ones(1).expand(3))
    refused(
        tutti.InvalidArgument, "whose elements share memory", hvd.grouped_allreduce_, [one, torch.ones(1).expand(3)]
    )
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    refused(tutti.InvalidArgument, "whose memory has been freed", hvd.allreduce, freed)
    refused(tutti.InvalidArgument, "handle is 5: it is what a call", hvd.synchronize, 5)
    refused(tutti.InvalidArgument, "handle is 5: it is what a call", hvd.poll, 5)
    refused(tutti.InvalidArgument, "whole numbers", hvd.ProcessSet, [0.5])
    refused(tutti.InvalidArgument, "whole numbers", hvd.add_process_set, ["0"])
    refused(tutti.InvalidArgument, "process_set is 3", hvd.remove_process_set, 3)
    refused(tutti.InvalidArgument, "root_rank is 0.0", hvd.broadcast_object, one, 0.0)
    refused(tutti.InvalidArgument, "root_rank is None", hvd.broadcast_parameters, {"a": one}, None)
    refused(tutti.InvalidArgument, "complex64", hvd.broadcast_parameters, {"a": one, "b": one.to(torch.complex64)}, 0)
    each_argument_that_is_wrong()
    if hvd.size() > 1:
        refused(tutti.InvalidArgument, "do not come out even", hvd.alltoall, torch.ones(2 * hvd.size() + 1))


def main():
    refused(tutti.InvalidUsage, "call tutti.hvd.init() first", hvd.rank)
    hvd.init()
    for case in (
        refusals,
        numbers_of_others,
        reductions,
        rare_types,
        averages,
        exact_factors,
        negated,
        compressed,
        moves,
        uneven,
        scattered,
        shapes,
    ):
        case()
    for case in (gradients, objects):
        case()
    hvd.barrier()
    hvd.shutdown()
    print("well")


main()
