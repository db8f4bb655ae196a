// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_names.h"

#include <algorithm>

#include "gui/session/track_loader.h"

namespace rankscope::gui {
namespace {

constexpr uint32_t kCopyKinds = 11;  // CUpti_ActivityMemcpyKind: 0 unknown to 10 peer to peer
constexpr uint32_t kOps = static_cast<uint32_t>(store::Op::recv) + 1;
constexpr size_t kNothing = 0, kMemset = 1, kFirstCopy = 2, kFirstOp = kFirstCopy + kCopyKinds,
                 kFirstCause = kFirstOp + kOps, kFirstStep = kFirstCause + kIdleCauseCount;

const char* copyName(uint32_t kind) {
    switch (kind) {
        case 1:
            return "copy host to device";
        case 2:
            return "copy device to host";
        case 8:
            return "copy device to device";
        case 10:
            return "copy peer to peer";
        default:
            return "copy";
    }
}

std::string idleName(uint32_t cause) {
    return "idle: " + std::string(facts::inWords(
                          facts::toText(static_cast<facts::IdleCause>(cause < kIdleCauseCount ? cause : 0))));
}

store::Op opOf(uint32_t name) {
    const uint32_t op = Track::kMaxName - std::min(name, Track::kMaxName);
    return op < kOps ? static_cast<store::Op>(op) : store::Op::unknown;
}

}  // namespace

std::string eventName(const RunInfo& run, EventTable table, const TrackEvent& event) {
    switch (table) {
        case EventTable::step:
            return "step " + std::to_string(event.row);
        case EventTable::memset:
            return "memset";
        case EventTable::memcpy:
            return copyName(event.name);
        case EventTable::ncclCall:
            return std::string(store::toText(opOf(event.name)));
        case EventTable::idleGap:
            return idleName(event.name);
        default:
            return event.name < run.strings.size() ? run.strings[event.name] : std::string();
    }
}

EventNames::EventNames(const RunInfo& run) : m_run(run) {
    m_fixed = {"", "memset"};
    for (uint32_t kind = 0; kind < kCopyKinds; ++kind) m_fixed.emplace_back(copyName(kind));
    for (uint32_t op = 0; op < kOps; ++op) m_fixed.emplace_back(store::toText(static_cast<store::Op>(op)));
    for (uint32_t cause = 0; cause < kIdleCauseCount; ++cause) m_fixed.push_back(idleName(cause));
    for (const StepInfo& step : run.steps) m_steps.push_back(std::max(0, step.step));
    std::sort(m_steps.begin(), m_steps.end());
    m_steps.erase(std::unique(m_steps.begin(), m_steps.end()), m_steps.end());
    for (const int32_t step : m_steps) m_fixed.push_back("step " + std::to_string(step));
}

size_t EventNames::index(EventTable table, uint32_t name, uint32_t row) const noexcept {
    const size_t fixed = m_run.strings.size();
    switch (table) {
        case EventTable::memset:
            return fixed + kMemset;
        case EventTable::memcpy:
            return fixed + kFirstCopy + (name < kCopyKinds ? name : 0);
        case EventTable::ncclCall:
            return fixed + kFirstOp + static_cast<size_t>(opOf(name));
        case EventTable::idleGap:
            return fixed + kFirstCause + (name < kIdleCauseCount ? name : 0);
        case EventTable::step: {
            const auto found = std::lower_bound(m_steps.begin(), m_steps.end(), static_cast<int64_t>(row));
            return found != m_steps.end() && *found == static_cast<int64_t>(row)
                       ? fixed + kFirstStep + static_cast<size_t>(found - m_steps.begin())
                       : fixed + kNothing;
        }
        default:
            return name < fixed ? name : fixed + kNothing;
    }
}

std::string_view EventNames::text(size_t index) const noexcept {
    return index < m_run.strings.size() ? std::string_view(m_run.strings[index])
                                        : std::string_view(m_fixed[index - m_run.strings.size()]);
}

}  // namespace rankscope::gui
