// SPDX-License-Identifier: Apache-2.0
#include "gui/session/kernel_waits.h"

#include <algorithm>

namespace rankscope::gui {
namespace {

constexpr const char* kMembers =
    "SELECT rank, kernel_id, wait_ns FROM collective_member WHERE kernel_id IS NOT NULL AND wait_ns > 0";
constexpr const char* kSenders =
    "SELECT c.rank, c.kernel_id, p.send_wait_ns FROM p2p p JOIN nccl_call c ON c.id = p.send_call_id WHERE "
    "c.kernel_id IS NOT NULL AND p.send_wait_ns > 0";
constexpr const char* kReceivers =
    "SELECT c.rank, c.kernel_id, p.recv_wait_ns FROM p2p p JOIN nccl_call c ON c.id = p.recv_call_id WHERE "
    "c.kernel_id IS NOT NULL AND p.recv_wait_ns > 0";

}  // namespace

RowsByRank<KernelWait>::Ranks readKernelWaits(store::TraceReader& reader) {
    RowsByRank<KernelWait>::Ranks ranks;
    for (const char* sql : {kMembers, kSenders, kReceivers}) {
        store::Statement rows(reader.database(), sql);
        while (rows.step()) ranks[static_cast<int32_t>(rows.integer(0))].push_back({rows.integer(1), rows.integer(2)});
    }
    for (auto& [rank, waits] : ranks) {
        // The longest of a kernel first; the others go.
        std::ranges::sort(waits, [](const KernelWait& a, const KernelWait& b) {
            return a.kernel != b.kernel ? a.kernel < b.kernel : a.waitNs > b.waitNs;
        });
        const auto others = std::ranges::unique(waits, {}, &KernelWait::kernel);
        waits.erase(others.begin(), others.end());
        waits.shrink_to_fit();
    }
    return ranks;
}

}  // namespace rankscope::gui
