# SPDX-License-Identifier: Apache-2.0
"""A training step captured once as a CUDA graph and replayed: torchrun --standalone --nproc_per_node=1 reference/pytorch/graph_train.py

Forward and backward are in the graph, the optimizer is not. Every rank trains on its own. Needs GPUs."""
import torch
import torch.distributed as dist

from transformer import Transformer, drawn_tokens, join_job, next_token_loss, nvtx_range, parser, run_steps

WARM_UP = 3  # steps before the capture, on a side stream: what is allocated or chosen the first time must not be in the graph


def captured(model, tokens):
    """(graph, loss tensor) of forward and backward of `tokens`, a buffer that is filled anew before each replay."""
    def forward_and_backward():
        loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            model.zero_grad(set_to_none=True)
            forward_and_backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = forward_and_backward()
    return graph, loss


def main() -> None:
    arguments = parser(__doc__).parse_args()
    device = join_job(arguments)
    if device.type != "cuda":
        raise SystemExit("a CUDA graph needs a GPU")
    model = Transformer(arguments.layers, arguments.hidden, arguments.heads).to(device).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(arguments.seed + dist.get_rank())
    tokens = drawn_tokens(generator, arguments, device).clone()
    graph, loss = captured(model, tokens)

    def one_step() -> float:
        tokens.copy_(drawn_tokens(generator, arguments, device))
        with nvtx_range("replay", device):
            graph.replay()
        with nvtx_range("optimizer", device):
            optimizer.step()  # no zero_grad: gradients were None at the capture, so each replay writes them anew
        return loss.item()

    value = run_steps(arguments, device, one_step)
    if dist.get_rank() == 0:
        print(f"graph: {dist.get_world_size()} ranks, {arguments.steps} steps, loss {value:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
