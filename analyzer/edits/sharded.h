// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Fully sharded layers are gathered while earlier ones compute: the all-gather of a layer is called before the calls
/// of the layer `depth` uses ahead of it, and waits only for the buffer it goes into: depth + 2 layers are kept, the
/// one in use, the one being released, and those on their way.
class Prefetch : public Edit {
  public:
    explicit Prefetch(int depth) : m_depth(depth) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    int m_depth;
};

/// Communication leaves when its data are there, and compute waits for it only where it needs the result: buckets of
/// gradients during the backward pass, sharded parameters one layer ahead, sharded gradients behind the next layer's
/// backward pass.
class Overlap : public Edit {
  public:
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
};

std::unique_ptr<Edit> parsePrefetch(EditArguments& arguments);
std::unique_ptr<Edit> parseOverlap(EditArguments& arguments);

}  // namespace rankscope::edits
