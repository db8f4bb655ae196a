// SPDX-License-Identifier: Apache-2.0
// Compares what a rank moves in a step with what the job's strategy has to move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// One row for each direction in which the job is split. Bytes are those on the bus: an operation's bytes times
/// nccl-tests' bus factor (facts::busFactor), n the ranks of the communicator, so that they are what a rank has to
/// send. N is what the gradients of a rank take that are reduced in a step. Expected is what a step of one forward and
/// backward pass moves:
///
/// - ZeRO-1 and ZeRO-2: 2 N (n-1)/n, a reduction of the gradients to shards and a gathering of the parameters; ZeRO-3
///   and FSDP: 3 N (n-1)/n, with the parameters gathered once for each pass (Rajbhandari et al., ZeRO,
///   arXiv:1910.02054, 7.1 to 7.2). Parameters that travel in another type than gradients count in theirs.
/// - HSDP: the same within the s ranks that share a copy, 3 N (s-1)/s, or 2 N (s-1)/s where parameters stay whole until
///   backward, and an all-reduce of the shard N/s among the r copies, 2 N/s (r-1)/r (Zhao et al., PyTorch FSDP,
///   arXiv:2304.11277, 3.2.2; an all-reduce is a reduction and a gathering).
/// - Data parallel without shards: 2 N (n-1)/n for an all-reduce (as above, 7.1). The all-reduces cannot tell N for
///   their own comparison: N is what was broadcast before the first step (DDP and DeepSpeed start all copies alike).
///   Where that was not recorded, nothing is expected.
/// - Pipelines of P stages with V parts each and M micro-batches: 2 M (P V - 1) activations and gradients between
///   neighbours (Narayanan et al., arXiv:2104.04473, 2.2). M is counted by these messages: nothing is expected.
/// - Tensor parallel, 4 all-reduces of an activation a layer and micro-batch (Shoeybi et al., arXiv:1909.08053, 3), and
///   expert parallel, 4 all-to-alls of the tokens' activations a layer (Lepikhin et al., arXiv:2006.16668, 3): the
///   layers and the sizes of activations are the model's, and not recorded. Nothing is expected.
///
/// A step of A micro-steps that reduces in the last one alone moves (2 A + 1) N in ZeRO-3, with N of one pass; one that
/// reduces in each moves A times the N of one pass, which no size tells apart from a model A times as large. That is
/// seen where the reductions repeat at the same places of the compute (diagnose::findRepeats).
///
/// Linear in the collectives and messages.
std::vector<VolumeRow> volumesOf(const job::Analysis& analysis);

/// "ZeRO-3 moves 225 MiB a rank and step, 1.00x the 3 N (n-1)/n of one pass; 100 MiB of gradients are reduced:
/// N". Without a full stop.
std::string volumeText(const VolumeRow& row);

/// Sets the states' share of the largest peak that was measured beside it. Empty where either is unknown, and where the
/// peak holds less: then the job does not keep these states.
std::string statesText(const std::vector<VolumeRow>& volumes, const std::vector<MemoryRow>& memory);

/// What parameters, gradients and Adam's states take of a rank's memory under a ZeRO stage, in bytes: with 2-byte
/// parameters and gradients 2 + 2 + 12 bytes a parameter (mixed precision: a 4-byte copy and two moments), with 4-byte
/// ones 4 + 4 + 8; of n ranks each keeps an n-th of the states from stage 1 on, of the gradients from stage 2 on, of
/// the parameters in stage 3 (Rajbhandari et al., arXiv:1910.02054, 3.1 and 5). Nothing for other sizes of parameters.
std::optional<double> adamStateBytes(int zeroStage, double parameters, int bytesPerParameter, int ranks);

}  // namespace rankscope::report
