"""DistributedOptimizer against one process that has all ranks' data. Usage: optimizer.py"""

import copy

import torch
from torch.nn import functional

import tutti
import tutti.hvd as hvd

ROWS = 6  # of each rank in each batch


def refused(kind, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


class Net(torch.nn.Module):
    """`aside` is used by some ranks only."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(5, 8), torch.nn.Linear(8, 3)
        self.aside = torch.nn.Linear(5, 3)

    def forward(self, data, by_side=False):
        out = self.second(torch.relu(self.first(data)))
        return out + self.aside(data) if by_side else out


def net(dtype=torch.float64):
    torch.manual_seed(1)
    return Net().to(dtype)


def batch(step, rank, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (
        torch.randn(ROWS, 5, generator=generator, dtype=torch.float64).to(dtype),
        torch.randint(3, (ROWS,), generator=generator),
    )


def everybody(step, dtype=torch.float64):
    data, labels = zip(*(batch(step, rank, dtype) for rank in range(hvd.size())))
    return torch.cat(data), torch.cat(labels)


def alone(make, steps=4, passes=1, factor=1.0, clip=None, dtype=torch.float64):
    """What one process comes to with the whole batches."""
    model = net(dtype)
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(passes):
            data, labels = everybody(step * passes + part, dtype)
            (factor * functional.cross_entropy(model(data), labels)).backward()
        for parameter in model.aside.parameters():
            parameter.grad = torch.zeros_like(parameter)  # as the others have it
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return model


def together(make, steps=4, passes=1, clip=None, dtype=torch.float64, **options):
    model = net(dtype)
    if hvd.rank() > 0:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), named_parameters=model.named_parameters(), backward_passes_per_step=passes, **options
    )
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(passes):
            data, labels = batch(step * passes + part, hvd.rank(), dtype)
            functional.cross_entropy(model(data), labels).backward()
        if clip is not None:
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
    return model


def agree(model, reference, **tolerance):
    for (name, got), wanted in zip(model.named_parameters(), reference.parameters()):
        torch.testing.assert_close(got, wanted, msg=lambda text, name=name: f"{name}: {text}", **tolerance)
        everywhere = hvd.allgather(got.detach().reshape(1, -1))
        assert (everywhere == everywhere[0]).all(), f"{name} differs among ranks"


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def plain():
    for make in (sgd, adam):
        agree(together(make), alone(make))
    agree(together(sgd, op=hvd.Sum), alone(sgd, factor=hvd.size()))
    agree(together(sgd, gradient_predivide_factor=2.0), alone(sgd))
    agree(together(sgd, clip=0.1), alone(sgd, clip=0.1))


def passes():
    """Gradients of several passes are added, and sent once."""
    before = hvd.stats()["all_reduce_bytes"]
    model = together(sgd, steps=3, passes=4)
    sent = hvd.stats()["all_reduce_bytes"] - before
    assert sent == 3 * 8 * sum(parameter.numel() for parameter in model.parameters()), sent
    agree(model, alone(sgd, steps=3, passes=4))


def grouped():
    model = net()
    for groups in (1, 2, [[*model.first.parameters()], [*model.second.parameters()]]):
        if isinstance(groups, int):
            agree(together(sgd, groups=groups), alone(sgd))
    before = hvd.stats()["all_reduce_operations"]
    agree(together(sgd, steps=5, groups=1), alone(sgd, steps=5))
    assert hvd.stats()["all_reduce_operations"] - before == 5  # one a step: all parameters are one group


def own_groups():
    model = net()
    optimizer = hvd.DistributedOptimizer(
        sgd(model.parameters()), model.named_parameters(), groups=[[*model.first.parameters()]]
    )
    data, labels = batch(0, hvd.rank())
    functional.cross_entropy(model(data), labels).backward()
    optimizer.step()
    agree(model, alone(sgd, steps=1))
    refused(
        tutti.InvalidArgument,
        "is not one of the optimizer's",
        hvd.DistributedOptimizer,
        sgd(model.parameters()),
        model.named_parameters(),
        groups=[[torch.nn.Parameter(torch.ones(1))]],
    )


def compressed():
    for compression, tolerance in ((hvd.Compression.fp16, 1e-3), (hvd.Compression.bf16, 1e-2)):
        model = together(sgd, compression=compression, dtype=torch.float32)
        agree(model, alone(sgd, dtype=torch.float32), atol=tolerance, rtol=0)
        exact = together(sgd, dtype=torch.float32)
        assert any(not torch.equal(one, other) for one, other in zip(model.parameters(), exact.parameters()))


def low_precision():
    """bfloat16 parameters, and a scaler of losses with half ones."""
    agree(together(sgd, dtype=torch.bfloat16), alone(sgd, dtype=torch.bfloat16), atol=0.05, rtol=0)
    model = net(torch.float32)
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(4):
        optimizer.zero_grad()
        data, labels = batch(step, hvd.rank(), torch.float32)
        scaler.scale(functional.cross_entropy(model(data), labels)).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    agree(model, alone(sgd, dtype=torch.float32), atol=1e-5, rtol=1e-5)


def unused():
    """Parameters that only rank 0 uses are the same everywhere afterwards."""
    model, rank = net(), hvd.rank()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    data, labels = batch(0, rank)
    functional.cross_entropy(model(data, by_side=rank == 0), labels).backward()
    optimizer.step()
    mine = net()
    data, labels = batch(0, 0)
    (functional.cross_entropy(mine(data, by_side=True), labels) / hvd.size()).backward()
    torch.testing.assert_close(model.aside.weight.grad, mine.aside.weight.grad)


def scheduled():
    """A scheduler made before, and one made after; and a closure."""

    def rates(early):
        model = net()
        inner = sgd(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(inner, 1, gamma=0.5) if early else None
        optimizer = hvd.DistributedOptimizer(inner, model.named_parameters())
        scheduler = scheduler or torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for step in range(3):
            optimizer.zero_grad()
            data, labels = batch(step, hvd.rank())
            functional.cross_entropy(model(data), labels).backward()
            optimizer.step()
            scheduler.step()
        return model

    def halving():
        model = net()
        optimizer = sgd(model.parameters())
        for step in range(3):
            optimizer.zero_grad()
            data, labels = everybody(step)
            functional.cross_entropy(model(data), labels).backward()
            for parameter in model.aside.parameters():
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            optimizer.param_groups[0]["lr"] /= 2
        return model

    for early in (True, False):
        agree(rates(early), halving())


def closure():
    def fit(model, optimizer, data, labels):
        def evaluate():
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(data), labels)
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(evaluate)
        return model

    mine, theirs = net(), net()
    used = [*mine.first.parameters(), *mine.second.parameters()]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.LBFGS(used, max_iter=5), [(name, p) for name, p in mine.named_parameters() if "aside" not in name]
    )
    reference = torch.optim.LBFGS([*theirs.first.parameters(), *theirs.second.parameters()], max_iter=5)
    agree(fit(mine, optimizer, *batch(0, hvd.rank())), fit(theirs, reference, *everybody(0)))


def states():
    """A rank that has trained hands on what its optimizer has gathered."""
    for make in (sgd, adam):
        trained, fresh = net(), net()
        optimizers = [make(trained.parameters()), make(fresh.parameters())]
        for _ in range(2):
            functional.cross_entropy(trained(batch(0, 0)[0]), batch(0, 0)[1]).backward()
            optimizers[0].step()
        optimizers[0].param_groups[0]["lr"] = 0.5
        kept = copy.deepcopy(optimizers[0].state_dict())
        mine = optimizers[0 if hvd.rank() == 1 else 1]
        hvd.broadcast_optimizer_state(mine, root_rank=1)
        got = mine.state_dict()
        assert got["param_groups"] == kept["param_groups"]
        assert got["state"].keys() == kept["state"].keys()
        for number, state in kept["state"].items():
            for name, value in state.items():
                torch.testing.assert_close(got["state"][number][name], value, rtol=0, atol=0)


def sparse():
    torch.manual_seed(1)
    table = torch.nn.Embedding(7, 3, sparse=True)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(table.parameters(), lr=1.0), table.named_parameters(), sparse_as_dense=True
    )
    before = table.weight.detach().clone()
    table(torch.tensor([hvd.rank(), 5])).sum().backward()
    optimizer.step()
    wanted = before.clone()
    wanted[5] -= 1
    wanted[: hvd.size()] -= 1 / hvd.size()
    torch.testing.assert_close(table.weight.detach(), wanted)
    other = torch.nn.Embedding(7, 3, sparse=True)
    hvd.DistributedOptimizer(torch.optim.SGD(other.parameters(), lr=1.0), other.named_parameters())
    refused(tutti.InvalidUsage, "the gradient of weight is sparse", other(torch.tensor([1])).sum().backward)


def misused():
    model = net()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    assert isinstance(optimizer, torch.optim.SGD)
    refused(tutti.InvalidUsage, "is a DistributedOptimizer already", hvd.DistributedOptimizer, optimizer)
    refused(
        tutti.InvalidArgument,
        "lacks 2 of the 6 parameters",
        hvd.DistributedOptimizer,
        sgd(model.parameters()),
        list(model.named_parameters())[2:],
    )
    refused(
        tutti.InvalidArgument,
        "several parameters of one name: same",
        hvd.DistributedOptimizer,
        sgd(model.parameters()),
        [("same", parameter) for parameter in model.parameters()],
    )
    refused(
        tutti.InvalidArgument,
        "backward_passes_per_step is 0",
        hvd.DistributedOptimizer,
        sgd(model.parameters()),
        backward_passes_per_step=0,
    )
    refused(
        tutti.InvalidArgument,
        "leave it away with Sum",
        hvd.DistributedOptimizer,
        sgd(model.parameters()),
        op=hvd.Sum,
        gradient_predivide_factor=2.0,
    )
    for wrong, text in (
        ({"backward_passes_per_step": 1.5}, "backward_passes_per_step is 1.5: it is a whole number"),
        ({"gradient_predivide_factor": 0}, "gradient_predivide_factor is 0: it is a number above 0"),
        ({"gradient_predivide_factor": "2"}, "gradient_predivide_factor is '2': it is one finite number"),
    ):
        refused(tutti.InvalidArgument, text, hvd.DistributedOptimizer, sgd(model.parameters()), **wrong)
    refused(NotImplementedError, "no Adasum", hvd.DistributedOptimizer, sgd(model.parameters()), op=hvd.Adasum)
    data, labels = batch(0, hvd.rank())
    functional.cross_entropy(model(data), labels).backward()
    refused(tutti.InvalidUsage, "zero_grad() was called after backward()", optimizer.zero_grad)
    refused(
        tutti.InvalidUsage,
        "was made once more while it is reduced",
        functional.cross_entropy(model(data), labels).backward,
    )
    optimizer.step()
    optimizer.zero_grad()
    optimizer.set_backward_passes_per_step(2)
    for _ in range(2):
        functional.cross_entropy(model(data), labels).backward()
    optimizer.step()


def main():
    hvd.init()
    for case in (
        plain,
        passes,
        grouped,
        own_groups,
        compressed,
        low_precision,
        unused,
        scheduled,
        closure,
        states,
        sparse,
        misused,
    ):
        case()
        hvd.barrier()
    hvd.shutdown()
    print("well")


main()
