# SPDX-License-Identifier: Apache-2.0
"""Run on virtual GPUs by operators_test.py: prints what PyTorch's operators take, in us, as a JSON object."""
import json
import sys

import torch
from torch.nn import functional

BF16 = dict(device="cuda", dtype=torch.bfloat16)


def device_us(work, repeat=1):
    """Time between events around the work, which has been done once before: then memory is there."""
    work()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    first.record()
    for _ in range(repeat):
        work()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) * 1e3 / repeat


x, y, out = (torch.empty(64 << 20, **BF16) for _ in range(3))
wide = torch.empty(1 << 20, 1, **BF16).expand(1 << 20, 64)
square = torch.empty(4096, 4096, **BF16)
single = torch.empty(1024, 1024, device="cuda")
q = torch.empty(4, 16, 2048, 64, requires_grad=True, **BF16)
k, v = torch.empty_like(q), torch.empty_like(q)
attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
gradient = torch.empty_like(attended)
parameters = [torch.zeros(1 << 20, device="cuda", requires_grad=True) for _ in range(64)]
for parameter in parameters:
    parameter.grad = torch.zeros_like(parameter)
fused = torch.optim.AdamW(parameters, fused=True)
image, filters = torch.empty(64, 64, 112, 112, **BF16), torch.empty(64, 64, 3, 3, **BF16)
tiny = torch.zeros(8, device="cuda")

times = {
    "add": device_us(lambda: torch.add(x, y, out=out)),
    "in_place": device_us(lambda: x.mul_(2)),
    "fill": device_us(lambda: x.fill_(3)),
    "convert": device_us(lambda: x.float()),
    "sum": device_us(lambda: x.sum()),
    "broadcast": device_us(lambda: torch.sum(wide, 1)),
    "softmax": device_us(lambda: x.view(-1, 4096).softmax(-1)),
    "mm": device_us(lambda: square @ square),
    "mm_fp32": device_us(lambda: single @ single),
    "attention": device_us(lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True)),
    "attention_backward": device_us(lambda: torch.autograd.grad(attended, q, gradient, retain_graph=True)),
    "convolution": device_us(lambda: functional.conv2d(image, filters, padding=1)),
    "adamw": device_us(fused.step),
    "tiny": device_us(lambda: tiny.add_(1), 1000),
}
json.dump(times, sys.stdout)
