// SPDX-License-Identifier: Apache-2.0
// How many bytes of gradients are there behind which kernel of the backward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/edits/gradient_rounds.h"

namespace rankscope::edits {

inline constexpr double kMebi = 1024.0 * 1024.0;

/// Where tensors end inside the present buckets.
enum class TensorEnds : uint8_t {
    behindKernels,  // with each kernel's part of the gradients
    known,          // nowhere
    anywhere,
};

class GradientCurve {
  public:
    /// From where the present buckets wait: a bucket's last gradient comes from the kernel it waits for. Between two
    /// buckets bytes are shared out among the kernels: kernels of one name and shape make the same number of bytes, and
    /// otherwise in proportion to their time. nullopt: nothing shows where the pass begins.
    static std::optional<GradientCurve> of(const TaskGraph& graph, const ComputeLane& compute,
                                           const GradientRound& round, const RoundMember& member);

    /// Cumulative sizes at which buckets of up to `cap` bytes end, in DDP's manner
    /// (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size): tensors in order of their
    /// gradients until the cap is reached; the first bucket's is 1 MiB at most.
    std::vector<double> plan(double cap, TensorEnds tensors) const;
    /// Index into ComputeLane::kernels of the kernel behind which that many bytes are there.
    int64_t readyAt(double bytes) const;
    /// First and last kernel that make gradients.
    int64_t first() const { return m_first; }
    int64_t last() const { return m_first + static_cast<int64_t>(m_bytes.size()) - 1; }
    double totalBytes() const { return m_bytes.empty() ? 0 : m_bytes.back(); }

  private:
    int64_t m_first = 0;          // kernel that m_bytes begins with
    std::vector<double> m_bytes;  // by kernel: cumulative
    std::vector<double> m_sent;   // by present bucket: cumulative
};

/// The first kernel that waits for one of a member's gathers.
struct FirstUse {
    int64_t kernel = -1;  // index into ComputeLane::kernels; -1: there is none
    bool ofAll = false;   // it waits for the last of them, and so for all
};
FirstUse firstUse(const TaskGraph& graph, const ComputeLane& compute, const std::vector<TaskId>& transfers);

/// A backward pass that waits for the sums of its own buckets: behind how many buckets more than the one summed, and
/// how many kernels behind that one's gradients; medians of the buckets that are awaited so.
struct BackwardWait {
    size_t buckets = 0;
    int64_t kernels = 1;
};
/// nullopt: most buckets are awaited behind all gradients.
std::optional<BackwardWait> backwardWait(const TaskGraph& graph, const ComputeLane& compute, const RoundMember& member);

/// By bucket: the kernel of the forward pass, which begins with `firstUse`, that needs its first byte. `ends`:
/// cumulative sizes of the gathers. Forward goes through the layers backward's other way round, at one speed: a layer
/// whose gradients are complete behind the share x of the backward pass is needed behind 1 - x of the forward pass.
/// `curve`: the gradients of the same step as that forward pass.
std::vector<int64_t> parameterUses(const ComputeLane& compute, int64_t firstUse, const std::vector<double>& ends,
                                   const GradientCurve& curve);

}  // namespace rankscope::edits
