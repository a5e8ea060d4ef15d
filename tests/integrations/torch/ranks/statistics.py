"""What the groups of PyTorch tell of what they have done: tutti_torch.stats(), and tutti.stats() and Prometheus' text where the
package tutti is used as well."""
import threading
import time
import urllib.request

import torch
import torch.distributed as dist

import tutti
import tutti_torch
from case import main


def self():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def grown(since, name="default_pg"):
    now = tutti_torch.stats()
    return {key[len(name) + 1:]: value - since.get(key, 0.0) for key, value in now.items() if key.startswith(f"{name}_")}


def counted_by_operation():
    before = tutti_torch.stats()
    tensor, whole = torch.ones(1000), torch.ones(100 * size())
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, async_op=True).wait()
    dist.broadcast(tensor, 0)
    dist.all_gather_into_tensor(whole, torch.ones(100))
    dist.reduce_scatter_tensor(torch.empty(100), whole)
    found = grown(before)
    assert found["all_reduce_operations"] == 2 and found["all_reduce_bytes"] == 8000, found
    assert found["all_gather_bytes"] == found["reduce_scatter_bytes"] == 400 * size(), found
    assert found["operations"] == 5 and found["bytes"] == 12000 + 800 * size(), found
    share = (size() - 1) / size()
    assert abs(found["bus_bytes"] - (8000 * 2 * share + 4000 + 2 * 400 * size() * share)) < 1e-6, found
    assert found["wait_seconds"] > 0 and found["library_operations"] == 5, found


def flat_floats():
    stats = tutti_torch.stats()
    assert all(isinstance(key, str) and isinstance(value, float) for key, value in stats.items())
    assert stats["default_pg_rank"] == self() and stats["default_pg_size"] == size()
    assert stats["default_pg_connected_peers"] > 0 and stats["default_pg_memory_bytes"] > 0
    assert stats["bus_bandwidth"] == stats["bus_bytes"] / stats["seconds"] > 0


def of_each_group():
    named, plain = dist.new_group(group_desc="halves"), dist.new_group()
    dist.all_reduce(torch.ones(5), group=named)
    dist.all_reduce(torch.ones(7), group=plain)
    stats = tutti_torch.stats()
    assert stats["halves_all_reduce_bytes"] == 20, stats
    assert stats[f"group_{plain.group_name}_all_reduce_bytes"] == 28, stats
    assert stats["bytes"] == sum(numbers["bytes"] for numbers in tutti_torch.groups().values())
    del stats
    dist.destroy_process_group(named)
    assert "halves" not in tutti_torch.groups()
    dist.destroy_process_group(plain)


def messages():
    before = tutti_torch.stats()
    if self() == 0:
        dist.send(torch.ones(10), 1)
    elif self() == 1:
        dist.recv(torch.empty(10), 0)
    found = grown(before)
    assert found.get("send_bytes", 0) == (40 if self() == 0 else 0), found
    assert found.get("recv_bytes", 0) == (40 if self() == 1 else 0), found


def waits_name_the_slow_rank():
    """Until it shows: how long the others are really ahead of rank 1 depends on the machine."""
    def waited():
        return tutti_torch.stats().get("default_pg_wait_for_rank_1_seconds", 0.0)

    begin = waited()
    for _ in range(200):
        if self() == 1:
            time.sleep(0.02)
        dist.barrier()
        seen = torch.tensor([float(self() != 1 and waited() - begin > 0.01)])
        dist.all_reduce(seen)
        if seen.item() == size() - 1:
            break
    else:
        raise AssertionError("the others' waits do not grow")
    assert self() != 1 or waited() == 0, "nobody waits for itself"


def in_tuttis_own_numbers():
    identifier = [tutti.unique_id() if self() == 0 else None]
    dist.broadcast_object_list(identifier)
    with tutti.Communicator.join(size(), identifier[0], self()) as comm:
        tutti.track(comm, "own")
        comm.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3))
        ours, all_of_them = tutti_torch.stats(), tutti.stats()
        assert all_of_them["own_all_reduce_bytes"] == 12 and ours.items() >= {"default_pg_size": size()}.items()
        assert {key for key in ours if key.startswith("default_pg_")} <= all_of_them.keys()
        assert all_of_them["bytes"] == ours["bytes"] + 12
        text = tutti.prometheus()
    line = f'tutti_bytes_total{{communicator="default_pg",rank="{self()}",operation="all_reduce"}} '
    assert f"{line}{ours['default_pg_all_reduce_bytes']:.0f}\n" in text, text
    assert f'tutti_operations_total{{communicator="own",rank="{self()}",operation="all_reduce"}} 1\n' in text, text


def scraped_while_it_trains():
    """The page is asked for as quickly as it comes, and no call is refused because of that."""
    line = f'tutti_operations_total{{communicator="default_pg",rank="{self()}",operation="all_reduce"}} '
    counts, done = [], threading.Event()
    with tutti.serve_prometheus(0) as endpoint:
        def scrape():
            while not done.is_set():
                with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics") as answer:
                    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                    counts.append(float(answer.read().decode().split(line)[1].split("\n")[0]))

        thread = threading.Thread(target=scrape)
        thread.start()
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
        while True:
            model(torch.ones(4, 32)).sum().backward()
            # Until pages of before and after a step are there: the first hundreds may all be of before the first.
            seen = len(counts) >= 3 and counts[-1] > counts[0]
            enough = torch.tensor([float(seen or not thread.is_alive())])
            dist.all_reduce(enough)
            if enough.item() == size():
                break
        done.set()
        thread.join()
    assert counts == sorted(counts) and len(counts) >= 3 and counts[-1] > counts[0], counts


if __name__ == "__main__":
    main(counted_by_operation, flat_floats, of_each_group, messages, waits_name_the_slow_rank, in_tuttis_own_numbers,
         scraped_while_it_trains)
