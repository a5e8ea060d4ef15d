"""Every collective on every data type, with odd sizes, in place and not, at once and as a request, against numpy."""
import sys

import numpy

import tutti

try:
    import ml_dtypes
    OTHERS = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
except ImportError:
    OTHERS = []
TYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", *OTHERS]
SIZES = [0, 1, 3, 127, 4099]


def given(rank, count, dtype):
    """Small whole numbers, which all types hold and can add without rounding."""
    return ((numpy.arange(count) + rank) % 3).astype(dtype)


def total(parts, dtype):
    whole = sum(part.astype("int64") for part in parts)
    return (whole != 0 if dtype == "bool" else whole).astype(dtype)


class Check:
    def __init__(self, comm, dtype, count, async_op):
        self.comm, self.dtype, self.count, self.async_op = comm, dtype, count, async_op
        self.all = [given(rank, count, dtype) for rank in range(comm.size)]
        self.mine = self.all[comm.rank].copy()
        self.wide = [given(rank, count * comm.size, dtype) for rank in range(comm.size)]

    def empty(self, count):
        return numpy.full(count, 1, self.dtype)

    def part(self, array, rank):
        return array[rank * self.count:(rank + 1) * self.count]

    def run(self, name, *arguments, **keywords):
        request = getattr(self.comm, name)(*arguments, async_op=self.async_op, **keywords)
        if self.async_op:
            request.wait()
            assert request.test() is True
        else:
            assert request is None

    def same(self, name, got, wanted):
        if got.tobytes() != wanted.tobytes():
            sys.exit(f"{name} of {self.count} {self.dtype} on rank {self.comm.rank}: {got[:8]} instead of {wanted[:8]}")

    def all_reduce(self):
        out = self.empty(self.count)
        self.run("all_reduce", self.mine, out)
        self.same("all_reduce", out, total(self.all, self.dtype))
        self.same("all_reduce's input", self.mine, self.all[self.comm.rank])
        inside = self.mine.copy()
        self.run("all_reduce", inside, op="max")
        self.same("all_reduce in place", inside, numpy.max([part.astype("float64") for part in self.all], axis=0).astype(self.dtype))

    def broadcast_reduce(self):
        root = self.comm.size - 1
        data = self.mine.copy()
        self.run("broadcast", data, root)
        self.same("broadcast", data, self.all[root])
        out = self.empty(self.count) if self.comm.rank == root else None
        self.run("reduce", self.mine, out, root=root)
        if out is not None:
            self.same("reduce", out, total(self.all, self.dtype))

    def gathers(self):
        everything = numpy.concatenate(self.all)
        out = self.empty(self.count * self.comm.size)
        self.run("all_gather", self.mine, out)
        self.same("all_gather", out, everything)
        out[:] = 0
        self.part(out, self.comm.rank)[:] = self.mine
        self.run("all_gather", self.part(out, self.comm.rank), out)
        self.same("all_gather in place", out, everything)
        out = self.empty(self.count * self.comm.size) if self.comm.rank == 0 else None
        self.run("gather", self.mine, out)
        if out is not None:
            self.same("gather", out, everything)

    def scatters(self):
        out = self.empty(self.count)
        mine = self.wide[self.comm.rank]
        self.run("reduce_scatter", mine, out)
        self.same("reduce_scatter", out, self.part(total(self.wide, self.dtype), self.comm.rank))
        self.run("scatter", mine if self.comm.rank == 0 else None, out)
        self.same("scatter", out, self.part(self.wide[0], self.comm.rank))
        out = self.empty(self.count * self.comm.size)
        wanted = numpy.concatenate([self.part(each, self.comm.rank) for each in self.wide])
        self.run("all_to_all", mine, out)
        self.same("all_to_all", out, wanted)
        inside = mine.copy()
        self.run("all_to_all", inside)
        self.same("all_to_all in place", inside, wanted)

    def uneven(self):
        """Each rank r has r + count elements."""
        size, rank = self.comm.size, self.comm.rank
        counts = [each + self.count for each in range(size)]
        parts = [given(each, counts[each], self.dtype) for each in range(size)]
        out = self.empty(sum(counts))
        self.run("all_gather", parts[rank], out, recv_counts=counts)
        self.same("all_gather of counts", out, numpy.concatenate(parts))
        out[:] = 0
        self.run("gather", parts[rank], out if rank == 0 else None, recv_counts=counts)
        if rank == 0:
            self.same("gather of counts", out, numpy.concatenate(parts))
        mine = self.empty(counts[rank])
        self.run("scatter", numpy.concatenate(parts) if rank == 0 else None, mine, send_counts=counts)
        self.same("scatter of counts", mine, parts[rank])
        whole = [given(each, sum(counts), self.dtype) for each in range(size)]
        self.run("reduce_scatter", whole[rank], mine, send_counts=counts)
        begin = sum(counts[:rank])
        self.same("reduce_scatter of counts", mine, total(whole, self.dtype)[begin:begin + counts[rank]])
        expected = [counts[rank]] * size
        got = self.empty(sum(expected))
        self.run("all_to_all", whole[rank], got, send_counts=counts, recv_counts=expected)
        self.same("all_to_all of counts", got, numpy.concatenate([each[begin:begin + counts[rank]] for each in whole]))

    def messages(self):
        after, before = (self.comm.rank + 1) % self.comm.size, (self.comm.rank - 1) % self.comm.size
        out = self.empty(self.count)
        with tutti.group():
            self.comm.send(self.mine, after)
            self.comm.recv(out, before)
        self.same("send and recv", out, self.all[before])


def main():
    with tutti.init() as comm:
        for dtype in TYPES:
            for count in SIZES:
                for async_op in (False, True):
                    check = Check(comm, dtype, count, async_op)
                    for step in (check.all_reduce, check.broadcast_reduce, check.gathers, check.scatters, check.uneven, check.messages):
                        step()
        comm.barrier()
    print("well")


main()
