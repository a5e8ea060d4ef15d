"""Training jobs, each on tutti and on Gloo with the same numbers: DistributedDataParallel and FSDP2 with what goes with them."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from case import called, main, say
from digits import batches, fresh, train


def compared(name, job, exact=None):
    """Two ranks add the same way whoever adds, so then every bit is equal; more may add in another order."""
    groups = {"tutti": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    results = {backend: job(group) for backend, group in groups.items()}
    (loss, parameters), (other_loss, others) = results["tutti"], results["gloo"]
    exact = dist.get_world_size() == 2 if exact is None else exact
    torch.testing.assert_close(loss, other_loss, rtol=0 if exact else 1e-3, atol=0 if exact else 1e-4)
    for ours, theirs in zip(parameters, others):
        torch.testing.assert_close(ours, theirs, rtol=0 if exact else 1e-2, atol=0 if exact else 1e-3)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, [parameter.sum().item() for parameter in parameters])
    assert all(sums == everyone[0] for sums in everyone), "the ranks' models differ"
    assert loss < 1.0, f"{name} has learnt nothing: loss {loss}"
    if dist.get_rank() == 0:
        say(f"{name}: loss {loss:.6f} on tutti, {other_loss:.6f} on gloo")


def of(model, loss):
    return loss, [parameter.detach().float() for parameter in model.parameters()]


def ddp(group, model=None, hook=None, hook_state=None, amp=None, scaler=None, dtype=torch.float32, **options):
    model = DDP((model or fresh()).to(dtype), process_group=group, **options)
    if hook:
        model.register_comm_hook(hook_state(group) if hook_state else group, hook)
    return of(model, train(model, amp=amp, scaler=scaler, dtype=dtype))


def plain():
    compared("DDP", ddp)


def several_buckets():
    compared("DDP, small buckets", lambda group: ddp(group, bucket_cap_mb=0.01, gradient_as_bucket_view=True))


def unused_parameters():
    compared("DDP, unused parameters", lambda group: ddp(group, fresh(unused=True), find_unused_parameters=True))


def static_graph():
    compared("DDP, static graph", lambda group: ddp(group, static_graph=True))


def mixed_precision():
    compared("DDP, autocast bfloat16", lambda group: ddp(group, amp=torch.bfloat16))
    compared("DDP, autocast float16, GradScaler", lambda group: ddp(group, amp=torch.float16, scaler=torch.amp.GradScaler("cpu")))
    compared("DDP, bfloat16", lambda group: ddp(group, dtype=torch.bfloat16))


def bf16_compress(group, bucket):
    """DDP refuses PyTorch's hook, by its name, where there is no GPU."""
    return default_hooks.bf16_compress_hook(group, bucket)


def compression():
    compared("DDP, fp16_compress_hook", lambda group: ddp(group, hook=default_hooks.fp16_compress_hook))
    compared("DDP, bf16_compress_hook", lambda group: ddp(group, hook=bf16_compress))
    compared("DDP, PowerSGD", lambda group: ddp(group, hook=powerSGD_hook.powerSGD_hook, hook_state=lambda own: powerSGD_hook.PowerSGDState(
        own, matrix_approximation_rank=4, start_powerSGD_iter=10)), exact=False)


def accumulation():
    """Of four steps, three are no_sync(): they call nothing, and the fourth one collective a bucket."""
    group = dist.new_group()
    model = DDP(fresh(), process_group=group, bucket_cap_mb=0.02)
    loader, _ = batches(16)
    counts = []
    for step, (images, labels) in zip(range(12), loader):
        before = called(group)
        if step % 4 < 3:
            with model.no_sync():
                nn.functional.cross_entropy(model(images), labels).backward()
        else:
            nn.functional.cross_entropy(model(images), labels).backward()
        counts.append(called(group) - before)
    # Step 4 tells how the first synchronisation has laid out the buckets.
    assert all(counts[step] == 0 for step in range(12) if step % 4 < 3 and step != 4), counts
    assert counts[7] == counts[11] > 1, counts
    if dist.get_rank() == 0:
        say(f"collectives of 12 steps, every fourth synchronised: {counts}")


def sharded(policy=None):
    def job(group):
        model = fresh()
        mesh = DeviceMesh.from_group(group, "cpu")
        options = {"mesh": mesh, **({"mp_policy": policy} if policy else {})}
        for layer in model.layers:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, **options)
        fully_shard(model, **options)
        loss = train(model)
        return loss, [parameter.full_tensor().detach() for parameter in model.parameters()]

    return job


def fsdp2():
    compared("FSDP2", sharded())


def fsdp2_mixed_precision():
    compared("FSDP2, bfloat16", sharded(MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)))
    compared("FSDP2, bfloat16 gradients too", sharded(MixedPrecisionPolicy(param_dtype=torch.bfloat16)), exact=False)


def fsdp2_average_and_factor():
    """AVG, and PREMUL_SUM for a divisor of one's own: Gloo has neither, so both are compared with a sum."""
    results = []
    for divisor in (None, float(dist.get_world_size())):
        model = fresh()
        fully_shard(model, mesh=DeviceMesh.from_group(dist.group.WORLD, "cpu"))
        if divisor:
            model.set_gradient_divide_factor(divisor)
        results.append((train(model), [parameter.full_tensor() for parameter in model.parameters()]))
    for ours, theirs in zip(results[0][1], results[1][1]):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    main(plain, several_buckets, unused_parameters, static_graph, mixed_precision, compression, accumulation, fsdp2,
         fsdp2_mixed_precision, fsdp2_average_and_factor)
