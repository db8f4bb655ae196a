// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Collectives run with another algorithm or protocol of NCCL. Times are the recorded ones x what measurements, else
/// NCCL's cost model, say of the two choices (costs/collective_cost.h).
class Algorithm : public Edit {
  public:
    struct To {
        store::Algorithm algorithm = store::Algorithm::unknown;  // unknown: the present one stays
        store::Protocol protocol = store::Protocol::unknown;
        bool automatic = false;             // what NCCL takes where no variable tells it: the cheapest that it has
        store::Op op = store::Op::unknown;  // unknown: every one
        std::optional<int64_t> communicator;
    };
    explicit Algorithm(To to) : m_to(to) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    To m_to;
};

std::unique_ptr<Edit> parseAlgorithm(EditArguments& arguments);

}  // namespace rankscope::edits
