"""What scripts of ranks begin and end with: the cases that are asked for, in one process group."""
import os
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=60 * int(os.environ.get("TUTTI_TEST_PATIENCE", "1")))


def say(text):
    """In one piece: all ranks have one standard output."""
    os.write(1, f"{text}\n".encode())


def main(*cases, backend="tutti"):
    """Runs those that the command line names, or all."""
    named = {case.__name__: case for case in cases}
    dist.init_process_group(backend, timeout=TIMEOUT)
    torch.manual_seed(1)
    for name in sys.argv[1:] or named:
        try:
            named[name]()
        except BaseException:
            say(f"rank {dist.get_rank()} failed in {name}\n{traceback.format_exc()}")
            raise
        dist.barrier()
    dist.destroy_process_group()
    say("well")


def raises(kind, words, call, *arguments, **keywords):
    """The call raises such an exception, with these words in its text, which is returned."""
    try:
        call(*arguments, **keywords)
    except kind as error:
        text = str(error)
    else:
        raise AssertionError(f"no {kind.__name__} with {words!r}")
    for word in [words] if isinstance(words, str) else words:
        assert word in text, f"{word!r} is not in: {text}"
    return text


def same(found, expected):
    """Bit by bit, where numbers are: of the same type and shape, too."""
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, found.shape, expected.dtype, expected.shape)
    assert torch.equal(bytes_of(found), bytes_of(expected)), f"\n{found}\nis not\n{expected}"


def bytes_of(tensor):
    return tensor.detach().resolve_conj().contiguous().view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0)


def called(group):
    """How many collectives the group's backend has been asked for. (A group of a backend from outside does not say so itself.)"""
    return group._get_backend(torch.device("cpu"))._get_sequence_number_for_group()
