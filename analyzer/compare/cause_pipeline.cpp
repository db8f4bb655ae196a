// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyzer/compare/cause_text.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

constexpr double kBubbleIsWhy = 0.3;  // of the change: how much longer a rank must wait in sends and receives, in the
                                      // mean; the rest may hide behind sums of gradients

double meanReceiveWait(const SideMeans& side) {
    double ns = 0;
    for (const auto& [name, role] : side.roles) ns += role.receiveWaitNs;
    return ns / static_cast<double>(std::max<size_t>(1, side.roles.size()));
}

/// A schedule as people say it: that there is one stage of layers on a rank goes without saying.
std::string told(std::string schedule) {
    constexpr std::string_view kPlain = ", 1 virtual stages";
    if (schedule.ends_with(kPlain)) schedule.resize(schedule.size() - kPlain.size());
    return schedule;
}

}  // namespace

std::optional<ChangeCause> pipelineCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    if (base.schedule.empty() || now.schedule.empty() || base.schedule == now.schedule) return std::nullopt;
    const double before = meanReceiveWait(base), after = meanReceiveWait(now);
    if (after - before < kBubbleIsWhy * ns) return std::nullopt;
    ChangeCause cause{"pipeline_schedule",
                      fmt::format("the pipeline runs {} instead of {}, which leaves stages idle for longer",
                                  told(now.schedule), told(base.schedule)),
                      diagnose::kBubble.id,
                      "",
                      {},
                      ns,
                      {}};
    cause.evidence.push_back(fmt::format("waiting for messages of other stages: {} a step, mean over ranks",
                                         fromTo(text::durationText(before), text::durationText(after), reversed)));
    return cause;
}

}  // namespace rankscope::compare
