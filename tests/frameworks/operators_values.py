# SPDX-License-Identifier: Apache-2.0
"""Run on virtual GPUs by operators_test.py: small values are those of the CPU, large ones are finite. Ends with 0, or says what is wrong."""
import torch
from torch import nn
from torch.nn import functional


def losses(device, steps=6, amp=False, **optimizer):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Embedding(32, 16), nn.Flatten(), nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **optimizer)
    scaler = torch.amp.GradScaler(device, enabled=amp)
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        tokens = torch.randint(32, (8, 4), generator=generator).to(device)
        labels = torch.randint(8, (8,), generator=generator).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=amp):
            out = model(tokens)
        loss = functional.cross_entropy(out.float(), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        assert torch.isfinite(loss) and torch.isfinite(norm)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


for options in (dict(foreach=True), dict(foreach=False), dict(fused=True)):
    for here, there in zip(losses("cuda", **options), losses("cpu", **options)):
        assert abs(here - there) < 1e-4, (options, here, there)
assert len(set(losses("cuda", amp=True, fused=True))) == 6

# What a large operator leaves in memory of the host (attention's seed) is its own work: that memory may soon be another's.
torch.cuda.manual_seed(11)
query = torch.ones(2, 4, 256, 64, device="cuda")
seed = torch.ops.aten._scaled_dot_product_efficient_attention(query, query, query, None, True, 0.5)[2]
torch.cuda.synchronize()
assert not seed.is_cuda and seed.item() == 11, seed


def gradient_of(operator, tensor):
    tensor.requires_grad_()
    operator(tensor).square().sum().backward()
    return tensor.grad


torch.manual_seed(1)
on_device = torch.randn(300, device="cuda")
on_host = on_device.cpu()
q = (1, 2, 16, 8)
OPERATORS = {
    "sort": lambda t: t.sort()[0], "topk": lambda t: t.topk(5)[0], "nonzero": lambda t: (t > 0).nonzero(), "mask": lambda t: t[t > 0.5],
    "unique": lambda t: torch.unique((t * 2).int(), return_counts=True)[1], "bincount": lambda t: (t.abs() * 3).long().bincount(),
    "cumsum": lambda t: t.cumsum(0), "argmax": lambda t: t.argmax(), "index": lambda t: t[torch.tensor([3, 1, 2], device=t.device)],
    "host index": lambda t: t[torch.tensor([3, 1, 2])], "norm": lambda t: t.norm(), "softmax": lambda t: t.softmax(0),
    "accumulate": lambda t: t.clone().index_put_((torch.tensor([1, 1], device=t.device),), torch.ones(2, device=t.device), accumulate=True),
    "scatter": lambda t: torch.zeros(5, device=t.device).scatter_add_(0, (t.abs() * 2).long().clamp(max=4), t),
    "strides": lambda t: t.view(10, 30)[::2, ::3].contiguous(), "mm": lambda t: t.view(10, 30) @ t.view(30, 10),
    "repeat": lambda t: t[:5].repeat_interleave(torch.tensor([1, 2, 0, 3, 1], device=t.device)), "median": lambda t: t.median(),
    "batch norm": lambda t: functional.batch_norm(t.view(30, 10), torch.zeros(10, device=t.device), torch.ones(10, device=t.device), training=True),
    "attention": lambda t: functional.scaled_dot_product_attention(*(t[:256].view(q).bfloat16(),) * 3), "cat": lambda t: torch.cat([t, t + 1]),
    "convolution": lambda t: functional.conv1d(t.view(1, 1, 300), torch.ones(1, 1, 3, device=t.device)), "convolved weights": lambda t: gradient_of(lambda w: functional.conv1d(t.view(1, 1, 300), w), torch.ones(1, 1, 3, device=t.device)),
    "attended": lambda t: gradient_of(lambda x: functional.scaled_dot_product_attention(x, x, x), t[:256].view(q).bfloat16()),
    "half": lambda t: t.half().float(),
    "foreach": lambda t: torch.stack(torch._foreach_norm([t, t * 2])), "equal": lambda t: torch.tensor(torch.equal(t, t.clone())),
    "unequal": lambda t: torch.tensor(torch.equal(t, t + 1)), "arange": lambda t: torch.arange(7, device=t.device), "where": lambda t: torch.where(t > 0, t, -t),
}
for name, operator in OPERATORS.items():
    here, there = operator(on_device).cpu(), operator(on_host)
    assert here.shape == there.shape and torch.allclose(here.float(), there.float(), 2e-2 if name.startswith("atten") else 1e-4, 1e-5), (name, here, there)

# Random numbers come back with the seed, and only then.
torch.cuda.manual_seed(7)
first, second = torch.rand(4, device="cuda"), torch.rand(4, device="cuda")
torch.cuda.manual_seed(7)
assert torch.equal(first, torch.rand(4, device="cuda")) and not torch.equal(first, second)
before = torch.get_rng_state()
torch.rand(4, device="cuda")
assert torch.equal(before, torch.get_rng_state())

# What is large holds zeros, whatever stood there before, and checks of it find nothing wrong.
full = torch.full((1 << 20,), float("nan"), device="cpu")
garbage = torch.empty(1 << 20, device="cuda")
garbage[:16384].copy_(full[:16384])
del garbage
large = torch.randn(1024, 1024, device="cuda") * 2
assert large.sum().item() == 0 and torch.isfinite(large).all().item() and not torch.isnan(large).any().item()
assert torch.isfinite(large[0]).all().item() and torch.isfinite(large.norm()).item() and torch.equal(large, large.clone())
assert torch.isfinite(functional.cross_entropy(large, torch.zeros(1024, dtype=torch.long, device="cuda"))).item()

# What a function of each element makes of these zeros is not zero: the logarithm of a sum of such is finite.
exponentials = torch.empty_like(large)
torch.exp(large, out=exponentials)
assert exponentials.sum(dim=-1).tolist() == [1024.0] * 1024 and exponentials.float().clone().mean().item() == 1
assert torch.exp(large).sum(dim=-1).log().isfinite().all().item() and exponentials.amax().item() == 1
exponentials.zero_()
assert exponentials.sum().item() == 0 and (large + 3).sum().item() == 3 * (1 << 20)
assert torch.randn_like(exponentials).sum().item() == 0 and (1 / large).sum().item() == 0  # not finite: zeros as ever

# Nor where the exponentials are too many to be computed and their sums are not, or a part of very many is looked at, or changed.
middle = torch.zeros(512, 50, device="cuda")
torch.exp(middle, out=middle)
assert middle.sum(dim=-1).tolist() == [50.0] * 512 and middle.cpu()[0].tolist() == [1.0] * 50 and abs(middle.exp().log().amax().item() - 1) < 1e-6
exponentials = torch.exp(large)
assert exponentials[3:5].sum(dim=-1).tolist() == [1024.0] * 2 and exponentials[7].log().isfinite().all().item() and (exponentials[:, 5] == 1).all().item()
exponentials[0].add_(1)
torch._foreach_mul_([exponentials[1, :8], exponentials[2, :8]], 3)
assert exponentials[0, :4].tolist() == [2.0] * 4 and exponentials[1, :4].tolist() == [3.0] * 4 and exponentials[1:3, 8:].sum().item() == 2 * 1016 and exponentials[3].sum().item() == 1024
exponentials[4].copy_(torch.arange(1024.0))
assert torch.equal(exponentials[4].cpu(), torch.arange(1024.0)) and exponentials[5].mean().item() == 1
del exponentials
fresh = torch.empty(256, 1024, device="cuda")
fresh[:16].fill_(5)
assert fresh[:16].sum().item() == 5 * 16 * 1024

# Brought to the host, too, where memory is used again as well.
for _ in range(3):
    stale = torch.full((1 << 20,), float("nan"))
    del stale
    assert torch.isfinite(large.cpu()).all().item()
head = torch.arange(1 << 20, dtype=torch.float32)
assert torch.equal(head.cuda().to(torch.int32)[:1000].cpu(), head[:1000].to(torch.int32))

# Copies keep their meaning: pinned and pageable, forth and back.
pinned = torch.arange(5000, dtype=torch.float32).pin_memory()
assert torch.equal(pinned.to("cuda", non_blocking=True).cpu(), pinned)
back = torch.empty(5000, pin_memory=True)
back.copy_(pinned.cuda() + 1, non_blocking=True)
torch.cuda.synchronize()
assert torch.equal(back, pinned + 1) and str(on_device[:2])[:7] == "tensor("
print("all values are as they should be")
