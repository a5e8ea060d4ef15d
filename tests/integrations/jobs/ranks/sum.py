"""One rank of a process group on tutti, which adds up 16 MiB."""
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("tutti")
    numbers = torch.ones(4 << 20)
    dist.all_reduce(numbers)
    assert (numbers == dist.get_world_size()).all(), numbers
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
