// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analyzer/export/exported_event.h"
#include "collector/store/event_model.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::exports {

/// A rank's kernel in a collective instance or a message.
struct MemberKernel {
    int64_t kernelId = 0;
    int64_t id = 0;  // of the collective, or of the p2p instance
    bool isMessage = false;
    int64_t waitNs = -1;  // -1: unknown
    int32_t rank = 0;
    ExportedFlow::Place place = ExportedFlow::Place::first;  // in the order of arrival
    bool hasFlow = false;                                    // more than one member is recorded
    uint64_t flowId() const { return (isMessage ? 3ull : 2ull) << 62 | static_cast<uint64_t>(id); }
};

/// Tells which kernels carried which collective or message.
class CollectiveMembers {
  public:
    /// Selects kernels that begin on a rank at a time that is wanted; arrows lead over these only.
    using Wanted = std::function<bool(int rank, int64_t startNs)>;
    CollectiveMembers(store::TraceReader& trace, const Wanted& wanted);
    /// Returns the members of a rank's kernel; several where calls were grouped.
    std::span<const MemberKernel> of(int rank, int64_t kernelId) const;
    /// nullptr when there is none.
    const store::Collective* collective(int64_t id) const;
    const store::P2p* message(int64_t id) const;

  private:
    void readCollectives(store::TraceReader& trace, const Wanted& wanted);
    void readMessages(store::TraceReader& trace, const Wanted& wanted);

    std::vector<store::Collective> m_collectives;  // by id
    std::vector<store::P2p> m_messages;            // by id
    std::vector<MemberKernel> m_members;           // by (rank, kernel)
};

}  // namespace rankscope::exports
