"""Training with FSDP2: of parameters, gradients and the optimizer's state each rank holds a part; checkpoints are written and
read by all ranks at once, and a job of another number of ranks can go on from them.

    torchrun --nproc-per-node 2 examples/pytorch/fsdp2.py
    torchrun --nproc-per-node 2 examples/pytorch/fsdp2.py --mixed-precision --checkpoint four-epochs
    torchrun --nproc-per-node 4 examples/pytorch/fsdp2.py --epochs 8 --resume four-epochs
    torchrun --nproc-per-node 2 examples/pytorch/fsdp2.py --backend gloo
"""
import argparse

import digits
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--mixed-precision", action="store_true", help="compute, gather and reduce in bf16")
    parser.add_argument("--sum", action="store_true", 
                        help="add gradients first and divide them then: Gloo, which knows no PREMUL_SUM, needs it to --divide-by")
    parser.add_argument("--divide-by", type=float, help="what the sum of gradients is divided by (default: number of ranks)")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="written at the end")
    parser.add_argument("--resume", metavar="FOLDER", help="go on from that checkpoint")
    return parser.parse_args()


def sharded(told):
    """The network, each layer of which gathers its parameters just before it needs them."""
    model = digits.network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    bf16 = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.bfloat16, "output_dtype": torch.float32}
    policy = MixedPrecisionPolicy(**(bf16 if told.mixed_precision else {}))
    for module in [*(layer for layer in model if isinstance(layer, nn.Linear)), model]:
        fully_shard(module, mesh=mesh, mp_policy=policy)
        module.set_force_sum_reduction_for_comms(told.sum)
        if told.divide_by:
            module.set_gradient_divide_factor(told.divide_by)
    return model


def state(model, optimizer, losses):
    parameters, moments = get_state_dict(model, optimizer)
    return {"model": parameters, "optimizer": moments, "losses": losses}


def load(folder, model, optimizer):
    """Fills model and optimizer from the checkpoint; the losses so far."""
    saved = state(model, optimizer, [])
    dcp.load(saved, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    return saved["losses"]


def main():
    told = arguments()
    digits.join(told.backend)
    model, batches = sharded(told), digits.share()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = load(told.resume, model, optimizer) if told.resume else []
    while len(losses) < told.epochs:
        batches.sampler.set_epoch(len(losses))
        losses.append(digits.epoch(model, optimizer, batches))
    if told.checkpoint:
        dcp.save(state(model, optimizer, losses), checkpoint_id=told.checkpoint)
    digits.report(losses, digits.accuracy(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
