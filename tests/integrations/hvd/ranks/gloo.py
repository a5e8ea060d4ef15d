"""The training of examples/horovod_digits.py on PyTorch's own Gloo, gradients averaged by hand. Usage: gloo.py EXAMPLES
FILE"""

import sys

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

EPOCHS, BATCH, SEED = 2, 56, 42


def main():
    sys.path.insert(0, sys.argv[1])
    from horovod_digits import Net, digits

    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(SEED)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(digits()[0], size, rank, seed=SEED)
    loader = DataLoader(digits()[0], BATCH // size, sampler=sampler)
    for epoch in range(1, EPOCHS + 1):
        sampler.set_epoch(epoch)
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= size
            optimizer.step()
            total += loss.item()
        mean = torch.tensor(total / len(loader), dtype=torch.float64)
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch}  loss {mean.item() / size:.6f}", flush=True)
    if rank == 0:
        torch.save(model.state_dict(), sys.argv[2])
    dist.destroy_process_group()


main()
