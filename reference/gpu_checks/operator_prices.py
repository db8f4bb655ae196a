# SPDX-License-Identifier: Apache-2.0
"""Measures what PyTorch's operators take on this GPU, as a price file of the virtual GPUs: python3 operator_prices.py FILE

Every operator that a transformer of several sizes calls, forward, backward and in AdamW, is run again by itself: a line of FILE
(reference/vgpu/README.md, "Measured prices") has its name, element, floating-point operations, bytes and time on the device."""
import pathlib
import sys

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import flop_registry

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))
from transformer import VOCABULARY, Transformer  # noqa: E402

ELEMENTS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64", torch.int64: "int64"}
REPEATS = 20
NOT_AGAIN = ("empty", "detach", "view", "_unsafe_view", "t", "transpose", "unbind", "expand", "_local_scalar_dense", "_to_copy", "set_", "resize_")


def tensors_of(values):
    """The tensors on the GPU in nested arguments, each storage once."""
    flat, _ = tree_flatten(values)
    return list({tensor.data_ptr(): tensor for tensor in flat if isinstance(tensor, torch.Tensor) and tensor.is_cuda and tensor.numel() > 0}.values())


def device_us(work):
    """Median of three times on the device, each of REPEATS runs back to back: as a graph, so that no launch is waited for."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            work()
    graph.replay()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(3):
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e3 / REPEATS)
    return sorted(times)[1]


class Measured(TorchDispatchMode):
    """Runs every operator again and writes down what that takes."""

    def __init__(self):
        super().__init__()
        self.lines = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = operator(*args, **kwargs)
        name = operator._schema.name  # "aten::mm"
        touched = tensors_of((args, kwargs, result))
        if not touched or name.split("::")[1] in NOT_AGAIN:
            return result
        packet = operator._overloadpacket
        flop = int(flop_registry[packet](*args, **kwargs, out_val=result)) if packet in flop_registry else 0
        size = sum(tensor.numel() * tensor.element_size() for tensor in touched)
        element = next((ELEMENTS[tensor.dtype] for tensor in touched if tensor.is_floating_point() and tensor.dtype in ELEMENTS), None)
        key = (name, element, flop, size)
        if element and key not in self.lines:
            self.lines[key] = None
            try:
                self.lines[key] = device_us(lambda: operator(*args, **kwargs))
            except RuntimeError as error:  # what cannot be captured has no line
                print(f"{name}: {error}", file=sys.stderr)
        return result


def main():
    measured = Measured()
    for hidden, heads, sequence, batch in ((512, 8, 256, 4), (1024, 16, 512, 4), (2048, 16, 1024, 4), (4096, 32, 2048, 2)):
        torch.manual_seed(7)
        with torch.device("cuda"):
            model = Transformer(1, hidden, heads).to(torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        tokens = torch.randint(VOCABULARY, (batch, sequence + 1), device="cuda")

        def step():
            logits = model(tokens[:, :-1])
            functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
            optimizer.step()

        step()
        optimizer.zero_grad(set_to_none=True)
        with measured:
            step()
    lines = [f"operator,{name},{element},{flop},{size},{us:.3f}\n" for (name, element, flop, size), us in sorted(measured.lines.items()) if us]
    header = f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}: operators of a bf16 transformer and AdamW, one by one\n"
    pathlib.Path(sys.argv[1]).write_text(header + "".join(lines))
    print(f"{len(lines)} operators")


if __name__ == "__main__":
    main()
