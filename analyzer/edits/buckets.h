// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Gradients travel in other buckets, or the same ones earlier. For ddp, ZeRO-1 and ZeRO-2 (whose all-gathers of
/// updated parameters follow the same buckets) and the replicas of larger layouts; sharded parameters have no buckets.
class Buckets : public Edit {
  public:
    /// `mebibytes`: cap of a bucket, as DDP's bucket_cap_mb; without it the present buckets stay. `overlap`: buckets
    /// that are sent when backward is over leave as soon as their gradients are there.
    Buckets(std::optional<double> mebibytes, bool overlap) : m_mebibytes(mebibytes), m_overlap(overlap) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
    replay::TaskGraph applied(const TrialGraph& of, EditEffect& effect) const override;

  private:
    std::optional<double> m_mebibytes;
    bool m_overlap;
};

std::unique_ptr<Edit> parseBuckets(EditArguments& arguments);

}  // namespace rankscope::edits
