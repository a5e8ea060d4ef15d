"""Every collective of every type: results are worked out from what all ranks give, which each rank knows."""
import torch
import torch.distributed as dist

from case import main, raises, same

SMALL = [torch.float8_e4m3fn, torch.float8_e5m2]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
MOVED = [torch.bool, *INTEGERS, *UNSIGNED, *SMALL, *FLOATS, *COMPLEX]
Op = dist.ReduceOp
SHAPES = [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (40_000,)]


def given(rank, dtype, shape=(6,), salt=0):
    """Ones and twos, which every type can add and multiply without rounding, for so few ranks."""
    count = torch.Size(shape).numel()
    numbers = (torch.arange(count) * 7 + rank * 3 + salt * 5 + torch.arange(count) // (rank + 2)) % 2 + 1
    if dtype == torch.bool:
        return (numbers == 2).reshape(shape)
    if dtype.is_complex:
        return torch.complex(numbers.double(), numbers.flip(0).double()).to(dtype).reshape(shape)
    return numbers.double().to(dtype).reshape(shape)


def of_all(dtype, shape=(6,), salt=0):
    return [given(rank, dtype, shape, salt) for rank in range(dist.get_world_size())]


def worked_out(op, parts):
    """In the widest type of its kind, and then in its own."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stack = torch.stack(parts)
        result = {Op.SUM: stack.any(0), Op.MAX: stack.any(0), Op.BOR: stack.any(0), Op.PRODUCT: stack.all(0), Op.MIN: stack.all(0),
                  Op.BAND: stack.all(0), Op.BXOR: stack.sum(0) % 2 == 1}
        return result[op]
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64
    stack = torch.stack([part.to(wide) for part in parts])
    if op == Op.SUM:
        result = stack.sum(0)
    elif op == Op.AVG and dtype.is_complex:  # part by part
        result = torch.view_as_complex(torch.view_as_real(stack.sum(0)) / len(parts))
    elif op == Op.AVG:
        result = stack.sum(0).div(len(parts), rounding_mode=None if dtype.is_floating_point else "trunc")
    elif op == Op.PRODUCT:
        result = stack.prod(0)
    elif op in (Op.MIN, Op.MAX):
        result = stack.amin(0) if op == Op.MIN else stack.amax(0)
    else:
        result = stack[0]
        for part in stack[1:]:
            result = {Op.BAND: result & part, Op.BOR: result | part, Op.BXOR: result ^ part}[op]
    return result.to(dtype)


def reductions():
    """Every operator with every type that has it."""
    for dtype in [torch.bool, *INTEGERS, *UNSIGNED, *SMALL, *FLOATS, *COMPLEX]:
        integral = not dtype.is_floating_point and not dtype.is_complex
        for op in [Op.SUM, Op.AVG, Op.PRODUCT, Op.MIN, Op.MAX, Op.BAND, Op.BOR, Op.BXOR]:
            if (op in (Op.BAND, Op.BOR, Op.BXOR) and not integral or op == Op.AVG and dtype == torch.bool
                    or dtype.is_complex and op not in (Op.SUM, Op.AVG)):
                continue
            yield dtype, op


def all_reduce():
    for dtype, op in reductions():
        for shape in SHAPES[:-1]:
            tensor = given(dist.get_rank(), dtype, shape)
            dist.all_reduce(tensor, op)
            same(tensor, worked_out(op, of_all(dtype, shape)))
    for dtype in [torch.bfloat16, torch.float32, torch.int64]:
        tensor = given(dist.get_rank(), dtype, SHAPES[-1])
        dist.all_reduce(tensor)
        same(tensor, worked_out(Op.SUM, of_all(dtype, SHAPES[-1])))


def refused():
    for dtype in [torch.float32, torch.bfloat16]:
        raises(ValueError, "Cannot use ReduceOp.BAND", dist.all_reduce, torch.ones(2, dtype=dtype), Op.BAND)
    raises(ValueError, "Cannot use ReduceOp.AVG with Bool", dist.all_reduce, torch.ones(2, dtype=torch.bool), Op.AVG)
    wrong = torch.empty(3 * dist.get_world_size() + 1)
    raises(ValueError, "elements are not", dist.all_gather_into_tensor, wrong, torch.ones(3))
    if dist.get_world_size() > 1:
        raises(ValueError, "cannot be divided among", dist.all_to_all_single, wrong, wrong.clone())
    ones = torch.ones(1)
    dist.all_reduce(ones)  # nothing was called, so nothing is out of step
    assert ones.item() == dist.get_world_size()


def pre_multiplied_sum():
    for dtype in FLOATS:
        for factor in (0.5, torch.tensor([0.25], dtype=dtype)):
            tensor = given(dist.get_rank(), dtype)
            dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
            same(tensor, worked_out(Op.SUM, [part * factor for part in of_all(dtype)]))
            output = torch.empty(6, dtype=dtype)
            whole = torch.cat([given(dist.get_rank(), dtype, salt=to) for to in range(dist.get_world_size())])
            dist.reduce_scatter_tensor(output, whole, dist._make_nccl_premul_sum(factor))
            same(output, worked_out(Op.SUM, [part * factor for part in of_all(dtype, salt=dist.get_rank())]))


def reduce():
    for root in range(dist.get_world_size()):
        for dtype, op in reductions():
            tensor = given(dist.get_rank(), dtype)
            dist.reduce(tensor, root, op)
            same(tensor, worked_out(op, of_all(dtype)) if dist.get_rank() == root else given(dist.get_rank(), dtype))


def broadcast():
    for root in range(dist.get_world_size()):
        for dtype in MOVED:
            for shape in SHAPES:
                tensor = given(dist.get_rank(), dtype, shape)
                dist.broadcast(tensor, root)
                same(tensor, given(root, dtype, shape))


def all_gather():
    size = dist.get_world_size()
    for dtype in MOVED:
        for shape in SHAPES:
            mine = given(dist.get_rank(), dtype, shape)
            outputs = [torch.zeros_like(mine) for _ in range(size)]
            dist.all_gather(outputs, mine)
            for found, expected in zip(outputs, of_all(dtype, shape)):
                same(found, expected)
            whole = torch.zeros((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(whole, mine)
            same(whole, torch.stack([part.view(torch.uint8) if dtype in SMALL else part for part in of_all(dtype, shape)])
                 .view(dtype) if shape else whole)


def all_gather_uneven():
    shapes = [(rank + 1, 2) for rank in range(dist.get_world_size())]
    for dtype in [torch.float32, torch.complex64, torch.bool]:
        outputs = [torch.zeros(shape, dtype=dtype) for shape in shapes]
        dist.all_gather(outputs, given(dist.get_rank(), dtype, shapes[dist.get_rank()]))
        for rank, found in enumerate(outputs):
            same(found, given(rank, dtype, shapes[rank]))


def gather_and_scatter():
    size, self = dist.get_world_size(), dist.get_rank()
    for root in range(size):
        for dtype in MOVED:
            for shape in [(3,), (2, 2), (0,)]:
                outputs = [torch.zeros(shape, dtype=dtype) for _ in range(size)] if self == root else None
                dist.gather(given(self, dtype, shape), outputs, root)
                for found, expected in zip(outputs or [], of_all(dtype, shape)):
                    same(found, expected)
                mine = torch.zeros(shape, dtype=dtype)
                dist.scatter(mine, of_all(dtype, shape) if self == root else None, root)
                same(mine, given(self, dtype, shape))


def reduce_scatter():
    size, self = dist.get_world_size(), dist.get_rank()
    for dtype, op in reductions():
        inputs = [given(self, dtype, salt=to) for to in range(size)]
        expected = worked_out(op, of_all(dtype, salt=self))
        output = torch.zeros(6, dtype=dtype)
        dist.reduce_scatter(output, inputs, op)
        same(output, expected)
        if dtype.is_complex:
            continue  # PyTorch itself has no such call
        output = torch.zeros(6, dtype=dtype)
        dist.reduce_scatter_tensor(output, torch.cat([part.view(torch.uint8) for part in inputs]).view(dtype)
                                   if dtype in SMALL else torch.cat(inputs), op)
        same(output, expected)


def reduce_scatter_uneven():
    size, self = dist.get_world_size(), dist.get_rank()
    output = torch.zeros(self + 1)
    dist.reduce_scatter(output, [given(self, torch.float32, (to + 1,), salt=to) for to in range(size)])
    same(output, worked_out(Op.SUM, of_all(torch.float32, (self + 1,), salt=self)))


def all_to_all():
    size, self = dist.get_world_size(), dist.get_rank()
    for dtype in MOVED:
        if dtype in SMALL:
            continue  # no torch.cat for them
        inputs = [given(self, dtype, (4,), salt=to) for to in range(size)]
        expected = [given(of, dtype, (4,), salt=self) for of in range(size)]
        outputs = [torch.zeros(4, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, inputs)
        for found, right in zip(outputs, expected):
            same(found, right)
        whole = torch.zeros(4 * size, dtype=dtype)
        dist.all_to_all_single(whole, torch.cat(inputs))
        same(whole, torch.cat(expected))


def all_to_all_uneven():
    """Rank s sends rank d (s + 2 d) % 3 rows of two elements: also none."""
    size, self = dist.get_world_size(), dist.get_rank()
    rows = lambda source, to: (source + 2 * to) % 3
    for dtype in [torch.float32, torch.int16, torch.complex64]:
        sent, taken = [rows(self, to) for to in range(size)], [rows(of, self) for of in range(size)]
        inputs = [given(self, dtype, (count, 2), salt=to) for to, count in enumerate(sent)]
        expected = [given(of, dtype, (count, 2), salt=self) for of, count in enumerate(taken)]
        whole = torch.zeros(sum(taken), 2, dtype=dtype)
        dist.all_to_all_single(whole, torch.cat(inputs), taken, sent)
        same(whole, torch.cat(expected))
        outputs = [torch.zeros(count, 2, dtype=dtype) for count in taken]
        dist.all_to_all(outputs, inputs)
        same(torch.cat(outputs), torch.cat(expected))


def gaps():
    """Tensors whose elements do not lie one after the other: transposed, every other one, expanded."""
    size, self = dist.get_world_size(), dist.get_rank()
    turned = given(self, torch.float32, (3, 5)).t()
    dist.all_reduce(turned)
    same(turned.t().contiguous(), worked_out(Op.SUM, of_all(torch.float32, (3, 5))))
    wide = torch.zeros(12)
    wide[::2] = given(self, torch.float32)
    dist.broadcast(wide[::2], 0)
    same(wide[::2].contiguous(), given(0, torch.float32))
    assert (wide[1::2] == 0).all(), "what lies between was written"
    outputs = [torch.zeros(5, 3).t() for _ in range(size)]
    dist.all_gather(outputs, given(self, torch.float32, (5, 3)).t())
    for rank, found in enumerate(outputs):
        same(found.contiguous(), given(rank, torch.float32, (5, 3)).t().contiguous())
    turned = torch.zeros(2, size).t()
    dist.all_gather_into_tensor(turned, torch.full((1, 2), self + 1.0))
    same(turned.contiguous(), torch.arange(1.0, size + 1).reshape(size, 1).expand(size, 2).contiguous())
    seen = torch.full((1,), float(self)).expand(4)  # one element, four times
    parts = [torch.zeros(4) for _ in range(size)]
    dist.all_gather(parts, seen)
    assert [part.tolist() for part in parts] == [[float(rank)] * 4 for rank in range(size)]


def as_gloo():
    """Random numbers, next to Gloo's results: sums are rounded in another order there."""
    other = dist.new_group(backend="gloo")
    for count in (1, 1000, 300_000):
        mine = torch.randn(count, generator=torch.Generator().manual_seed(7 + dist.get_rank()))
        ours, theirs = mine.clone(), mine.clone()
        dist.all_reduce(ours)
        dist.all_reduce(theirs, group=other)
        torch.testing.assert_close(ours, theirs)
        dist.broadcast(ours, 0), dist.broadcast(theirs, 0, group=other)
        torch.testing.assert_close(ours, theirs)
    dist.destroy_process_group(other)


def sparse():
    size, self = dist.get_world_size(), dist.get_rank()
    for values in ((), (2,)):
        tensor = torch.sparse_coo_tensor([[0, self + 1]], torch.ones(2, *values), (size + 1, *values))
        dist.all_reduce(tensor)
        expected = torch.ones(size + 1, *values)
        expected[0] = size
        assert tensor.is_sparse and torch.equal(tensor.to_dense(), expected)


def sparse_of_several_sizes():
    """All ranks are told alike, and the group goes on."""
    self, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        return
    odd = size - 1
    for usual, other in (((4, 3), (9, 3)), ((4, 3), (4, 2)), ((4, 3), (4,))):
        tensor = torch.sparse_coo_tensor([[self]], torch.ones(1, *(other if self == odd else usual)[1:]), other if self == odd else usual)
        raises(ValueError, [f"rank 0 has {list(usual)}", f"rank {odd} has {list(other)}"], dist.all_reduce, tensor)
    indices = [[0], [0]] if self == odd else [[0]]
    tensor = torch.sparse_coo_tensor(indices, torch.ones(1) if self == odd else torch.ones(1, 3), (4, 3))
    raises(ValueError, [f"rank {odd} has [4, 3] with 2 sparse dimensions"], dist.all_reduce, tensor)
    sparse()


def factors_that_are_no_values():
    for dtype, factor in ((torch.int32, 0.5), (torch.int8, 300.0), (torch.uint8, -1.0), (torch.int64, torch.tensor(1.5)),
                          (torch.int64, float("nan")), (torch.complex64, torch.tensor(1 + 2j)), (torch.float32, torch.tensor(2j))):
        raises(ValueError, "PREMUL_SUM", dist.all_reduce, torch.ones(3, dtype=dtype), dist._make_nccl_premul_sum(factor))
    for dtype, factor in ((torch.int32, 3.0), (torch.int64, torch.tensor(-2)), (torch.complex64, torch.tensor(2 + 0j)),
                          (torch.float16, 0.1), (torch.float32, torch._neg_view(torch.tensor(2.0)))):
        tensor = torch.full((3,), 2, dtype=dtype)
        expected = tensor * torch.as_tensor(factor).to(dtype) * dist.get_world_size()
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
        assert torch.allclose(tensor, expected, rtol=1e-3), (dtype, factor, tensor, expected)


if __name__ == "__main__":
    main(all_reduce, refused, pre_multiplied_sum, reduce, broadcast, all_gather, all_gather_uneven, gather_and_scatter, reduce_scatter,
         reduce_scatter_uneven, all_to_all, all_to_all_uneven, gaps, as_gloo, sparse, sparse_of_several_sizes,
         factors_that_are_no_values)
