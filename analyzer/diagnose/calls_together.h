// SPDX-License-Identifier: Apache-2.0
// The collectives of one communicator in their order, and whether their members stand still until each has brought its
// data. That is what tells calls alone, without kernels: behind a collective of tensor parallelism all begin anew,
// while with buckets of gradients everybody goes on. Chance tells which, without any knowledge of the program: small
// differences of the members' arrivals, which noise makes, are gone at the next collective in the first case and still
// there in the second.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

/// After the end of NCCL's kernel before it: one that stood in its stream behind that one starts within some
/// microseconds, twice as long where an event of another stream lies between. Whoever computed less than this between
/// two collectives has fallen behind by less, too, so that nothing is lost with it.
inline constexpr int64_t kStartsWithinNs = 20'000;

struct Arrival {
    int64_t atNs = 0;
    int64_t endNs = 0;
    /// It came when it was ready. Else its collective began the moment that the one before it ended: it was ready
    /// earlier, nobody knows how much.
    bool ready = true;
};

struct CallTogether {
    int64_t id = 0;  // of the collective
    store::Op op = store::Op::unknown;
    int step = -1;                   // -1: in none
    int place = 0;                   // in its step, from 0
    std::map<int, Arrival> members;  // by rank: those that are recorded

    /// More than half of them, `except` left out, came when they were ready.
    bool mostReady(int except = -1) const;
    /// Nobody left before the last one had come: of an all-reduce by what it is, of a broadcast (DDP sends the buffers
    /// of the model in each forward pass) by how it was, since its root need not wait for the others.
    bool keepsAll() const;
};

/// Those that nobody leaves before the last one has come, and of which two members or more are recorded.
std::vector<CallTogether> callsTogether(const job::Analysis& analysis, int64_t communicator);

/// The correlation of a member's deviation from the others' mean arrival with that at its collective before, over the
/// steps; of both those where it came when it was ready. 0: they stand still, 1: they do not. What a member always
/// differs by is no chance, and is taken out.
class StandingStill {
  public:
    explicit StandingStill(const std::vector<CallTogether>& calls);

    /// Between these places of a step; nothing where there is too little noise to tell.
    std::optional<bool> isBetween(int from, int to) const;

  private:
    using Pairs = std::vector<std::pair<double, double>>;  // deviations before and after, ns
    struct Sums {
        double products = 0, squares = 0;
        size_t count = 0;

        void add(const Pairs& ofOneRank);
        void add(const Sums& other);
        bool tells() const;
        double correlation() const { return products / squares; }
    };

    std::map<std::pair<int, int>, Sums> m_sums;  // by place before and place
    Sums m_all;
};

}  // namespace rankscope::diagnose
