// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/side_means.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

constexpr double kWorthACause = 0.2;   // of the change: five causes are as many as a reader takes in
constexpr double kWorthAsking = 0.05;  // of the change: less is no part of a cause that others share, as two operations
                                       // of one use do
constexpr double kIsWhy = 0.5;         // of what grew: what explains more than half of it is its reason
constexpr double kGrew = 0.001;        // of compute: no machine repeats a run better than that (kNoiseFloor)
constexpr double kOther = 0.15;  // share of messages or their bytes: a bucket more or less at the end of a step is less
constexpr double kSlower = 0.02;  // share: how much slower messages of one size must be, beyond what runs differ by
// Of a part that slower messages must explain: what they no longer hide comes on top.
constexpr double kLinkIsWhy = 0.3;

struct KindRow {
    std::string_view name;                 // in rankscope.compare/1
    StepPart part;                         // what it makes longer
    const diagnose::Diagnosis* diagnosis;  // its findings are of this kind; null: none are
    const char* text;                      // of {where} and {change}, where no finding tells
    const char* faster = "";               // the same of a step that got shorter; empty: the text fits both
};

/// There is one row for each kind, and one more for each other diagnosis whose findings are of that kind.
constexpr KindRow kKinds[] = {
    {"unknown", StepPart::rest, nullptr, "what changed is not told by the differences"},
    {"pipeline_schedule", StepPart::compute, &diagnose::kBubble,
     "the pipeline runs {change}, which leaves stages idle for longer",
     "the pipeline runs {change}, which leaves stages idle for less long"},
    {"stage_imbalance", StepPart::compute, &diagnose::kStageImbalance, ""},
    {"uneven_work", StepPart::compute, &diagnose::kUnevenWork, "more work on {where}: {change}",
     "less work on {where}: {change}"},
    {"more_work", StepPart::compute, nullptr, "more work on {where}: {change}", "less work on {where}: {change}"},
    {"other_kernels", StepPart::compute, nullptr, "other kernels run on {where}, {change}"},
    {"contention", StepPart::compute, &diagnose::kContention, ""},
    {"straggler", StepPart::compute, &diagnose::kStraggler, "the same kernels are slower on {where}: {change}",
     "the same kernels are faster on {where}: {change}"},
    {"slow_node", StepPart::compute, &diagnose::kStragglerNode, ""},
    {"slower_compute", StepPart::compute, nullptr, "the same kernels are slower on {where}: {change}",
     "the same kernels are faster on {where}: {change}"},
    {"full_precision", StepPart::transfer, &diagnose::kFullPrecision, "{where} in {change}"},
    {"redundant_communication", StepPart::transfer, &diagnose::kRedundant, ""},
    {"more_bytes", StepPart::transfer, nullptr, "{where}: {change} a step"},
    {"group_spans_nodes", StepPart::transfer, &diagnose::kTensorParallelSpan, ""},
    {"algorithm", StepPart::transfer, &diagnose::kAlgorithm, ""},
    {"slower_link", StepPart::transfer, &diagnose::kSlowLink,
     "the link is slower: {where} of the same size takes {change}",
     "the link is faster: {where} of the same size takes {change}"},
    {"slower_link", StepPart::transfer, &diagnose::kUnderUsedLink, ""},
    {"slower_p2p", StepPart::transfer, &diagnose::kExposedP2p,
     "the link is slower: {where} of the same size takes {change}",
     "the link is faster: {where} of the same size takes {change}"},
    {"smaller_buckets", StepPart::transfer, &diagnose::kSmallMessages, ""},
    {"lost_overlap", StepPart::transfer, &diagnose::kOverlap, "{where} hides less behind compute: {change}",
     "{where} hides more behind compute: {change}"},
    {"slow_input", StepPart::host, &diagnose::kInput, ""},
    {"synchronisation", StepPart::host, &diagnose::kSynchronisation, ""},
    {"allocator", StepPart::host, &diagnose::kAllocator, ""},
    {"launch_bound", StepPart::host, &diagnose::kLaunchBound, ""},
    {"stalls", StepPart::host, &diagnose::kTransient, ""},
    {"pageable_copies", StepPart::memory, &diagnose::kPageable, ""},
};

/// The first row of a name; one that no row has does not compile.
consteval const KindRow& kind(std::string_view name) {
    return *std::ranges::find(kKinds, name, &KindRow::name);
}

/// Holds both sides, the fast one as base, and the findings that cost more on the slow one.
struct Sides {
    const SideMeans &base, &now;
    bool reversed = false;                    // the slow side is the base of the comparison
    std::vector<const FindingChange*> grown;  // that come to more on the slow side

    /// "2.00 ms -> 3.00 ms": in the order of the comparison.
    std::string fromTo(const std::string& fast, const std::string& slow) const {
        return reversed ? slow + " -> " + fast : fast + " -> " + slow;
    }
    /// "B instead of A": likewise.
    std::string instead(const std::string& fast, const std::string& slow, const char* word = "instead of") const {
        return fmt::format("{} {} {}", reversed ? fast : slow, word, reversed ? slow : fast);
    }
    /// A growth from the fast side to the slow one as a change from the base to the new side.
    double change(double growth) const { return reversed ? 1 / (1 + growth) - 1 : growth; }
};

/// Holds the ranks that compute longer.
struct Compute {
    ComputeGrowth growth;
    std::vector<std::string> roles;  // empty: all
};

/// Is traffic of one use and operation that both sides have.
struct Messages {
    TrafficSummary before, after;
    double slowerNs = 0;  // that those of sizes which both sides send take more than number and size explain
    double sameNs = 0;    // what those take on the slow side
    double excessNs = 0;  // that all of them together take more than number and size explain

    double countGrowth() const { return after.count / before.count - 1; }
    double bytesGrowth() const { return before.bytes > 0 && after.bytes > 0 ? after.bytes / before.bytes - 1 : 0; }
    double slowerBy() const { return sameNs > slowerNs ? slowerNs / (sameNs - slowerNs) : 0; }
    /// Number and size are why they take longer.
    bool isAmount() const { return excessNs <= kIsWhy * (after.transferNs - before.transferNs); }
};

/// A part of the change, and what changed in the job that bears on it.
struct Case {
    const Sides& sides;
    AttributionRow row;  // its ns is what is asked about
    std::optional<Compute> compute;
    std::optional<Messages> messages;

    ChangeCause is(const KindRow& known, std::string where = {}, const std::string& change = {}) const {
        ChangeCause cause;
        cause.kind = known.name;
        const char* text = sides.reversed && *known.faster ? known.faster : known.text;
        cause.text = fmt::format(fmt::runtime(text), fmt::arg("where", where), fmt::arg("change", change));
        cause.diagnosis = known.diagnosis ? known.diagnosis->id : "";
        cause.where = std::move(where);
        cause.ns = row.ns;
        cause.covers = row.what;
        return cause;
    }
};

// What changed in the job, as facts.

/// Returns what messages take more than their number and their size explain, ns. One takes a latency and its bytes over
/// the link's rate, so that larger ones take less per byte and smaller ones less each: what is slower by both is slower
/// for another reason.
double slowerNs(const TrafficSummary& before, const TrafficSummary& after) {
    if (before.count <= 0 || after.count <= 0 || before.transferNs <= 0 || after.transferNs <= 0) return 0;
    double growth = after.transferNs / after.count / (before.transferNs / before.count);
    if (before.bytes > 0 && after.bytes > 0)
        growth = std::min(growth, after.transferNs / after.bytes / (before.transferNs / before.bytes));
    return after.transferNs * (1 - 1 / growth);
}

std::optional<Messages> messagesOf(const Sides& sides, const std::string& traffic) {
    const std::map<std::string, TrafficSummary> before = byUse(sides.base), after = byUse(sides.now);
    const auto b = after.find(traffic);
    if (b == after.end()) return std::nullopt;
    Messages messages{text::valueAt(before, traffic), b->second};
    messages.excessNs = slowerNs(messages.before, messages.after);
    for (const auto& [key, row] : sides.now.traffic) {
        const auto was = sides.base.traffic.find(key);
        if (trafficName(row.use, row.op) != traffic || was == sides.base.traffic.end()) continue;
        messages.slowerNs += slowerNs(was->second, row);
        messages.sameNs += row.transferNs;
    }
    if (messages.sameNs < kIsWhy * messages.after.transferNs) {  // most have other sizes
        messages.slowerNs = messages.excessNs;
        messages.sameNs = messages.after.transferNs;
    }
    return messages;
}

/// Finds the ranks whose longer compute explains `ns` more of the critical path; all of them where the reason of those
/// that stand out `isKnown`.
std::optional<Compute> computeOf(const Sides& sides, double ns, bool isKnown) {
    std::vector<std::string> roles;
    if (!isKnown) roles = rolesThatGrew(sides.base, sides.now, &RoleSummary::computeNs);
    const ComputeGrowth growth = growthOf(sides.base, sides.now, roles);
    if (growth.time() < kGrew || !explainsPath(growth, sides.base, sides.now, ns)) return std::nullopt;
    return Compute{growth, std::move(roles)};
}

/// Says what devices wait for their hosts for, where that explains a good part of `ns`: on the rank where it grew most.
std::vector<std::string> stallFacts(const Sides& sides, double ns) {
    std::map<std::string, std::pair<double, std::string>> most;  // by cause
    for (const auto& [name, after] : sides.now.roles) {
        const auto before = sides.base.roles.find(name);
        if (before == sides.base.roles.end()) continue;
        for (const auto& [cause, stallNs] : after.stallByCauseNs) {
            const double more = stallNs - text::valueAt(before->second.stallByCauseNs, cause);
            most[cause] = std::max(most[cause], {more, name});
        }
    }
    std::vector<std::string> facts;
    for (const auto& [cause, growth] : most)
        if (growth.first >= kWorthACause * ns)
            facts.push_back(fmt::format("device idle for the host ({}): {} {} a step, most on {}", cause,
                                        text::durationText(growth.first), sides.reversed ? "less" : "more",
                                        growth.second));
    return facts;
}

/// Names the traffic whose exposed transfer grew most.
std::string mostExposed(const Sides& sides) {
    const std::map<std::string, TrafficSummary> before = byUse(sides.base);
    std::pair<double, std::string> most;
    for (const auto& [use, after] : byUse(sides.now))
        most = std::max(most, {after.exposedTransferNs - text::valueAt(before, use).exposedTransferNs, use});
    return most.second;
}

/// Says a schedule as people do: that there is one stage of layers on a rank goes without saying.
std::string told(const std::string& schedule) {
    return schedule.substr(0, schedule.find(", 1 virtual stages"));
}

/// "12.0 % longer", "6.5 times as long"; of a faster step "10.7 % less time".
std::string longerText(const Sides& sides, double growth) {
    if (sides.reversed) return fmt::format("{:.1f} % less time", -100 * sides.change(growth));
    return growth < 1 ? fmt::format("{:.1f} % longer", 100 * growth) : fmt::format("{:.1f} times as long", 1 + growth);
}

/// Says the facts of a case in sentences.
std::vector<std::string> factsOf(const Case& c) {
    std::vector<std::string> facts;
    const auto fromTo = [&](double fast, double slow, std::string (*toText)(double)) {
        return c.sides.fromTo(toText(fast), toText(slow));
    };
    if (c.compute) {
        const ComputeGrowth& growth = c.compute->growth;
        std::vector<int> ranks;
        facts.push_back(
            fmt::format("compute of {}: {} a step ({})", placeText(c.sides.now, c.compute->roles, ranks),
                        fromTo(growth.baseNs / growth.members, growth.newNs / growth.members, text::durationText),
                        signedPercentText(c.sides.change(growth.time()))));
    }
    if (c.messages) {
        const TrafficSummary &before = c.messages->before, &after = c.messages->after;
        const auto add = [&](const std::string& fact) { facts.push_back(c.row.traffic + ": " + fact); };
        add(fmt::format("{} messages, {} a step and rank",
                        fromTo(before.count, after.count, [](double count) { return fmt::format("{:.0f}", count); }),
                        fromTo(before.bytes, after.bytes, text::bytesText)));
        add(fmt::format("transfer {}, exposed {}", fromTo(before.transferNs, after.transferNs, text::durationText),
                        fromTo(before.exposedTransferNs, after.exposedTransferNs, text::durationText)));
        const auto addOther = [&](const char* what, const std::string& fast, const std::string& slow) {
            if (fast != slow && !fast.empty() && !slow.empty()) add(what + c.sides.fromTo(fast, slow));
        };
        addOther("data type ", before.dataType, after.dataType);
        addOther("sent by ", before.algorithm + "/" + before.protocol, after.algorithm + "/" + after.protocol);
        addOther("nodes ", std::to_string(before.nodes), std::to_string(after.nodes));
    }
    if (c.row.part == StepPart::host) facts = stallFacts(c.sides, c.row.ns);
    return facts;
}

// The rules, asked in this order of what no finding explains. Each says what a case is, or nothing.

using Answer = std::optional<ChangeCause>;

ChangeCause ofCompute(const Case& c, const KindRow& known, const std::string& change) {
    std::vector<int> ranks;
    ChangeCause cause = c.is(known, placeText(c.sides.now, c.compute->roles, ranks), change);
    cause.ranks = ranks;
    return cause;
}

/// Another schedule or number of micro-batches leaves stages idle ((P - 1) / (M V + P - 1) of the step).
Answer otherSchedule(const Case& c) {
    const std::string &before = c.sides.base.schedule, &after = c.sides.now.schedule;
    if (before.empty() || after.empty() || before == after) return {};
    const bool isOfStages =
        c.messages && c.messages->after.use == "pipeline" && std::abs(c.messages->countGrowth()) >= kOther;
    if (!isOfStages && (c.compute || c.row.part != StepPart::compute)) return {};
    return c.is(kind("pipeline_schedule"), "", c.sides.instead(told(before), told(after)));
}

/// Asks whether kernels gave way to others that take longer.
Answer otherKernels(const Case& c) {
    if (!c.compute || !c.compute->growth.replaced()) return {};
    const ComputeGrowth& growth = c.compute->growth;
    if (growth.addedNs - growth.goneNs <= kIsWhy * growth.ns()) return {};
    return ofCompute(c, kind("other_kernels"), c.sides.instead(growth.gone, growth.added, "in place of"));
}

/// Larger grids, or kernels on top of those that were there.
Answer moreWork(const Case& c) {
    if (!c.compute || c.compute->growth.work() <= kIsWhy * c.compute->growth.time()) return {};
    return ofCompute(c, c.compute->roles.empty() ? kind("more_work") : kind("uneven_work"),
                     signedPercentText(c.sides.change(c.compute->growth.work())));
}

/// Asks whether the same kernels take longer.
Answer slowerKernels(const Case& c) {
    if (!c.compute) return {};
    return ofCompute(c, c.compute->roles.empty() ? kind("slower_compute") : kind("straggler"),
                     longerText(c.sides, c.compute->growth.time()));
}

/// Another data type, larger messages, or more of them that are as large.
Answer moreBytes(const Case& c) {
    if (!c.messages) return {};
    if (c.messages->before.count <= 0)
        return c.is(kind("more_bytes"), c.row.traffic,
                    fmt::format("{} that the {} side does not send,", text::bytesText(c.messages->after.bytes),
                                c.sides.reversed ? "new" : "base"));
    if (c.messages->bytesGrowth() < kOther || !c.messages->isAmount()) return {};
    const std::string bytes = signedPercentText(c.sides.change(c.messages->bytesGrowth())) + " of bytes";
    const std::string &before = c.messages->before.dataType, &after = c.messages->after.dataType;
    if (before != after && !before.empty() && !after.empty())
        return c.is(kind("full_precision"), c.row.traffic, c.sides.instead(before, after) + ": " + bytes);
    return c.is(kind("more_bytes"), c.row.traffic, bytes);
}

/// Messages take longer, whatever their number and their size.
Answer slowerLink(const Case& c) {
    if (!c.messages || c.messages->slowerBy() < kSlower) return {};
    // Sums are means over ranks; messages from rank to rank may all be those of one slow pair, through which the path
    // then leads.
    const bool isOfPairs = c.messages->after.op == "send" || c.messages->after.op == "recv";
    const double mostNs = c.messages->slowerNs * (isOfPairs ? static_cast<double>(c.sides.now.roles.size()) : 1);
    if (mostNs < kLinkIsWhy * c.row.ns) return {};
    return c.is(c.messages->after.use == "pipeline" ? kind("slower_p2p") : kind("slower_link"), c.row.traffic,
                longerText(c.sides, c.messages->slowerBy()));
}

/// Neither size nor link: less of it is hidden, as of messages that are larger, or called later.
Answer lessHidden(const Case& c) {
    if (!c.messages) return {};
    return c.is(kind("lost_overlap"), c.row.traffic,
                c.sides.instead(text::durationText(c.messages->before.exposedTransferNs),
                                text::durationText(c.messages->after.exposedTransferNs), "of it exposed instead of") +
                    " a step");
}

constexpr Answer (*kExplanations[])(const Case&) = {otherSchedule, otherKernels, moreWork,  slowerKernels,
                                                    moreBytes,     slowerLink,   lessHidden};

ChangeCause why(const Case& c) {
    Answer answer;
    for (const auto rule : kExplanations)
        if (!answer) answer = rule(c);
    ChangeCause cause = answer ? *std::move(answer) : c.is(kind("unknown"));
    cause.evidence = factsOf(c);
    return cause;
}

/// A row with its facts. `isKnown`: a finding says why some ranks compute longer.
Case caseOf(const Sides& sides, AttributionRow row, bool isKnown) {
    if (row.part == StepPart::transfer && row.traffic.empty()) row.traffic = mostExposed(sides);
    Case one{sides, std::move(row), {}, {}};
    if (one.row.part == StepPart::compute) one.compute = computeOf(sides, one.row.ns, isKnown);
    if (one.row.part == StepPart::transfer) one.messages = messagesOf(sides, one.row.traffic);
    return one;
}

/// Returns the parts of the step that got longer. The host, what it launches and the gaps it leaves are one.
std::vector<AttributionRow> partsOf(const Sides& sides, double ns) {
    std::vector<AttributionRow> parts;
    for (AttributionRow& row : attributeChange(sides.base, sides.now, ns)) {
        if (row.part == StepPart::rest) continue;
        const bool isHost = row.part == StepPart::host || row.part == StepPart::launch || row.part == StepPart::gap ||
                            row.part == StepPart::idle;
        if (isHost) row.part = StepPart::host;
        const auto same = std::ranges::find(parts, StepPart::host, &AttributionRow::part);
        if (isHost && same != parts.end())
            same->ns += row.ns;
        else
            parts.push_back(std::move(row));
    }
    std::erase_if(parts, [&](const AttributionRow& row) { return row.ns < kWorthAsking * ns; });
    std::ranges::stable_sort(parts, std::greater{}, &AttributionRow::ns);
    return parts;
}

/// Makes causes of one kind and the same ranks one.
void merge(ChangeCause cause, std::vector<ChangeCause>& causes) {
    const auto same = std::ranges::find_if(
        causes, [&](const ChangeCause& other) { return other.kind == cause.kind && other.ranks == cause.ranks; });
    if (same == causes.end()) {
        causes.push_back(std::move(cause));
        return;
    }
    same->ns += cause.ns;
    if (cause.where == same->where) return;
    same->where += "; " + cause.where;
    same->text += "; " + cause.text;
    same->evidence.insert(same->evidence.end(), cause.evidence.begin(), cause.evidence.end());
}

/// Turns findings that cost more than before into causes, as causes of the row that they cover; the most expensive
/// first.
std::vector<ChangeCause> findingsAsCauses(const Sides& sides, const std::vector<AttributionRow>& parts, double ns) {
    std::vector<ChangeCause> causes;
    for (const KindRow& priced : kKinds) {
        if (!priced.diagnosis) continue;
        const char* id = priced.diagnosis->id;
        const FindingSide was = findingsOf(sides.base, id), is = findingsOf(sides.now, id);
        const bool bySaving = FindingChange::bySaving(was, is);
        const auto &before = bySaving ? was.savingNs : was.costNs, &after = bySaving ? is.savingNs : is.costNs;
        if (!before || !after || *after - *before < kWorthACause * ns) continue;
        auto row = std::ranges::find(parts, priced.part, &AttributionRow::part);
        if (row == parts.end()) row = parts.begin();
        Case one = caseOf(sides, row == parts.end() ? AttributionRow{} : *row, false);
        one.row.ns = *after - *before;
        const bool isPipeline = one.messages && one.messages->after.use == "pipeline";
        ChangeCause cause = one.is(priced.name == "slower_link" && isPipeline ? kind("slower_p2p") : priced);
        cause.diagnosis = id;
        cause.where = "another place in each run";
        cause.text = priced.diagnosis->title;
        const auto finding = std::ranges::find_if(sides.grown, [&](const FindingChange* grown) {
            const FindingSide& slow = sides.reversed ? grown->base : grown->now;
            return grown->id == id && 2 * slow.runs > slow.ofRuns;
        });
        if (finding != sides.grown.end()) {
            cause.where = (*finding)->where;
            cause.text = (*finding)->title + ": " + (*finding)->cause;
            if (sides.reversed)
                cause.text =
                    fmt::format("{}, {}: {}", (*finding)->title,
                                (*finding)->now.runs > 0 ? "less than before" : "gone; before", (*finding)->cause);
            cause.ranks = (*finding)->ranks;
        }
        cause.evidence = factsOf(one);
        cause.evidence.push_back(fmt::format("{}{} {} a step", id, bySaving ? ": its repair saves" : " costs",
                                             sides.fromTo(text::durationText(*before), text::durationText(*after))));
        causes.push_back(std::move(cause));
    }
    std::ranges::stable_sort(causes, std::greater{}, &ChangeCause::ns);
    return causes;
}

}  // namespace

std::vector<ChangeCause> whyChanged(const SideMeans& base, const SideMeans& now,
                                    const std::vector<FindingChange>& findings, double changeNs) {
    const bool reversed = changeNs < 0;
    const double ns = std::abs(changeNs);
    Sides sides{reversed ? now : base, reversed ? base : now, reversed, {}};
    for (const FindingChange& finding : findings) {
        const auto &fast = finding.worthNs(reversed ? finding.now : finding.base),
                   &slow = finding.worthNs(reversed ? finding.base : finding.now);
        if (fast && slow && *slow > *fast) sides.grown.push_back(&finding);
    }
    std::vector<AttributionRow> parts = partsOf(sides, ns);
    std::vector<ChangeCause> causes;
    double leftNs = ns;  // what no finding explains
    for (ChangeCause& cause : findingsAsCauses(sides, parts, ns)) {
        cause.ns = std::min(cause.ns, leftNs);
        if (cause.ns < kWorthACause * ns) break;
        leftNs -= cause.ns;
        causes.push_back(std::move(cause));
    }
    const size_t found = causes.size();
    for (const AttributionRow& part : parts) {
        if (leftNs < kWorthACause * ns) break;
        AttributionRow row = part;
        bool isKnown = false;
        for (size_t i = 0; i < found; ++i)
            if (causes[i].covers == row.what) {
                row.ns -= causes[i].ns;
                isKnown = true;
            }
        row.ns = std::min(row.ns, leftNs);
        if (row.ns < kWorthAsking * ns) continue;
        merge(why(caseOf(sides, row, isKnown)), causes);
    }
    std::erase_if(causes, [&](const ChangeCause& cause) { return cause.ns < kWorthACause * ns; });
    if (causes.empty()) causes.push_back({"unknown", kind("unknown").text, "", "", {}, ns, {}});
    std::ranges::stable_sort(causes, std::greater{}, &ChangeCause::ns);
    for (ChangeCause& cause : causes)
        if (reversed) cause.ns = -cause.ns;
    return causes;
}

}  // namespace rankscope::compare
