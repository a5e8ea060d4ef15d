"""send, recv, isend, irecv, receives from any rank, and batches of them."""
import gc
from datetime import timedelta

import torch
import torch.distributed as dist

from case import main, raises, same
from collectives import MOVED, given

ERROR = dist.DistBackendError


def self():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def of_every_type():
    for dtype in MOVED:
        for shape in [(), (5,), (0,), (3, 4), (100_000,)]:
            if self() == 0:
                dist.send(given(0, dtype, shape), 1)
            elif self() == 1:
                tensor = torch.zeros(shape, dtype=dtype)
                assert dist.recv(tensor, 0) == 0
                same(tensor, given(0, dtype, shape))


def with_gaps():
    if self() == 0:
        dist.send(given(0, torch.float32, (4, 3)).t(), 1)
    elif self() == 1:
        wide = torch.zeros(3, 8)
        dist.recv(wide[:, ::2], 0)
        same(wide[:, ::2].contiguous(), given(0, torch.float32, (4, 3)).t().contiguous())
        assert (wide[:, 1::2] == 0).all()


def by_tags():
    """A tag picks a message that is not the first; of one tag they come in order."""
    if self() == 0:
        works = [dist.isend(torch.full((3,), float(i)), 1, tag=i % 2) for i in range(6)]
        for work in works:
            work.wait()
    elif self() == 1:
        found = {0: [], 1: []}
        for tag in (1, 1, 0, 1, 0, 0):
            tensor = torch.zeros(3)
            dist.recv(tensor, 0, tag=tag)
            found[tag].append(tensor[0].item())
        assert found == {0: [0, 2, 4], 1: [1, 3, 5]}, found


def ring():
    """All at once, both ways round."""
    left, right = (self() - 1) % size(), (self() + 1) % size()
    ops = []
    taken = {}
    for peer in {left, right}:
        taken[peer] = torch.zeros(1000)
        ops += [dist.P2POp(dist.irecv, taken[peer], peer), dist.P2POp(dist.isend, torch.full((1000,), float(self())), peer)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for peer, tensor in taken.items():
        same(tensor, torch.full((1000,), float(peer)))


def from_any_rank():
    if self() != 0:
        for i in range(3):
            dist.send(torch.tensor([float(self()), i]), 0)
        return
    seen = {rank: [] for rank in range(1, size())}
    for _ in range(3 * (size() - 1)):
        tensor = torch.zeros(2)
        source = dist.recv(tensor)
        assert tensor[0].item() == source
        seen[source].append(tensor[1].item())
    assert all(numbers == [0, 1, 2] for numbers in seen.values()), seen


def beside_collectives():
    """A message under way holds up no collective, though one is called between its two ends."""
    tensor = torch.full((4,), float(self()))
    work = None
    if self() == 0:
        work = dist.irecv(tensor, 1)
    ones = torch.ones(1)
    dist.all_reduce(ones)
    assert ones.item() == size()
    if self() == 1:
        dist.send(torch.full((4,), 7.0), 0)
    if work:
        work.wait()
        same(tensor, torch.full((4,), 7.0))


def in_subgroups():
    group = dist.new_group([0, 1])
    if self() == 0:
        dist.send(torch.tensor([5]), 1, group=group)
    elif self() == 1:
        tensor = torch.tensor([0])
        dist.recv(tensor, 0, group=group)
        assert tensor.item() == 5


def too_late():
    group = dist.new_group(timeout=timedelta(milliseconds=300))
    if self() == 0:
        raises(ERROR, ["rank 1 has not sent rank 0 a message with tag 3", "300 ms"], dist.recv, torch.zeros(2), 1, group=group, tag=3)
    dist.barrier()
    if self() == 1:
        dist.send(torch.ones(2), 0, group=group, tag=4)
    elif self() == 0:
        tensor = torch.zeros(2)
        dist.recv(tensor, 1, group=group, tag=4)  # another receive works still
        same(tensor, torch.ones(2))


def of_another_size():
    if self() == 0:
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(4), 1)
    elif self() == 1:
        raises(ERROR, ["12 bytes from rank 0", "16 bytes were expected"], dist.recv, torch.zeros(4), 0)
        dist.recv(torch.zeros(4), 0)  # and the next one comes as it should


def refused():
    raises(ValueError, "", dist.send, torch.ones(1), self())
    raises((ValueError, RuntimeError), "", dist.send, torch.ones(1), size() + 3)


def given_up():
    """The end of a group ends a receive that nobody will ever serve."""
    group = dist.new_group()
    work = dist.irecv(torch.zeros(1), (self() + 1) % size(), group=group)
    dist.destroy_process_group(group)
    del group
    gc.collect()
    raises(ERROR, "process group", work.wait)


def awaited_by_their_futures():
    """Which have no time of their own: a receive ends for them too, and its callbacks hold up no other's."""
    group = dist.new_group(timeout=timedelta(milliseconds=300))
    if self() == 0:
        words = ["rank 1 has not sent rank 0 a message with tag", "300 ms, the timeout of this receive"]
        raises(ERROR, [*words, "tag 5 "], dist.irecv(torch.zeros(2), 1, group=group, tag=5).get_future().wait)
        first, second = (dist.irecv(torch.zeros(2), 1, group=group, tag=tag).get_future() for tag in (6, 7))
        told = first.then(lambda _: raises(ERROR, words, second.wait))
        assert "with tag 7" in told.wait()
        raises(ERROR, "no rank has sent rank 0", dist.irecv(torch.zeros(2), group=group).get_future().wait)
    dist.barrier()
    if self() == 1:
        dist.send(torch.ones(2), 0, group=group, tag=8)
    elif self() == 0:
        same(dist.irecv(torch.zeros(2), 1, group=group, tag=8).get_future().wait()[0], torch.ones(2))


def shut_down():
    """Also ends receives that are still wanted, which nobody would end later."""
    group = dist.new_group()
    future = dist.irecv(torch.zeros(1), (self() + 1) % size(), group=group).get_future()
    group._get_backend(torch.device("cpu")).shutdown()
    raises(ERROR, "shut down", future.wait)


def asked_while_it_ends():
    """Works that are asked without end, and whose tensors nobody else keeps."""
    for _ in range(50):
        if self() == 0:
            work = dist.isend(torch.ones(3), 1)
            while not work.is_completed():
                pass
        elif self() == 1:
            work = dist.irecv(torch.zeros(3), 0)
            while not work.is_completed():
                pass


def under_way_while_a_group_is_made():
    """The first message of its way waits for its receiver, and all for the group."""
    group = dist.new_group()
    if self() == 0:
        work = dist.isend(torch.ones(3), 1, group=group)
    elif self() == 1:
        dist.recv(torch.zeros(3), 0, group=group)
    dist.new_group()
    if self() == 0:
        work.wait()


def received_in_a_callback():
    """Of the same rank: by a receive of its own, and by one that has waited behind."""
    if self() == 0:
        for value in range(3):
            dist.send(torch.full((2,), float(value)), 1)
    elif self() == 1:
        first, second, third = (torch.zeros(2) for _ in range(3))
        behind = dist.irecv(first, 0), dist.irecv(second, 0)

        def go_on(_):
            behind[1].wait()
            dist.recv(third, 0)

        behind[0].get_future().then(go_on).wait()
        for value, tensor in enumerate((first, second, third)):
            same(tensor, torch.full((2,), float(value)))


def computed_in_a_callback():
    """As anywhere: what depends on parameters knows its gradients."""
    if self() == 0:
        dist.send(torch.ones(2), 1)
    elif self() == 1:
        weight = torch.ones(2, requires_grad=True)
        future = dist.irecv(torch.zeros(2), 0).get_future().then(lambda done: (done.value()[0] * weight).sum())
        future.wait().backward()
        same(weight.grad, torch.ones(2))


def the_last_of_a_group():
    """A group that is destroyed in a callback of its own."""
    group = dist.new_group()
    if self() == 0:
        dist.send(torch.ones(2), 1, group=group)
    elif self() == 1:
        future = dist.irecv(torch.zeros(2), 0, group=group).get_future()
        future.then(lambda _: dist.destroy_process_group(group)).wait()
        group = None
        gc.collect()


if __name__ == "__main__":
    main(of_every_type, with_gaps, by_tags, ring, from_any_rank, beside_collectives, in_subgroups, too_late, of_another_size, refused,
         given_up, awaited_by_their_futures, shut_down, asked_while_it_ends, under_way_while_a_group_is_made,
         received_in_a_callback, computed_in_a_callback,
         the_last_of_a_group)
