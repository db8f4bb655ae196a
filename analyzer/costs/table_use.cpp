// SPDX-License-Identifier: Apache-2.0
// Finds the tables that nothing rests on, and says why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::costs {
namespace {

using Sent = std::map<std::pair<GroupShape, store::Op>, std::set<std::pair<double, AlgorithmChoice>>>;

/// Lists what the job sent: sizes and choices by shape of the group and operation.
Sent sentBy(const facts::TraceFacts& facts) {
    Sent sent;
    for (const store::Collective& one : facts.collectives) {
        const facts::Communicator* communicator = facts.findCommunicator(one.communicatorId);
        if (communicator != nullptr && communicator->size > 1 && one.bytes.value_or(0) > 0)
            sent[{shapeOf(*communicator), one.op}].insert(
                {static_cast<double>(*one.bytes), {one.algorithm, one.protocol}});
    }
    return sent;
}

std::string groupText(GroupShape shape) {
    return fmt::format("{} ranks on {}", shape.ranks, text::countedText(shape.nodes, "node"));
}

std::string choiceText(AlgorithmChoice choice) {
    return fmt::format("{}/{}", ncclName(choice.algorithm), ncclName(choice.protocol));
}

Message messageOf(GroupShape shape, store::Op op, double bytes, AlgorithmChoice choice) {
    Message message;
    message.shape = shape;
    message.op = op;
    message.bytes = bytes;
    message.present = choice;
    return message;
}

/// Says why no group of the job sends what the table is about; empty where one does.
std::string elsewhere(const Sent& sent, const CurveKey& key) {
    if (sent.contains({key.shape, key.op})) return {};
    std::set<std::string> groups;
    for (const auto& [what, sizes] : sent)
        if (what.first != key.shape) groups.insert(groupText(what.first));
    const bool shaped = std::ranges::any_of(sent, [&](const auto& one) { return one.first.first == key.shape; });
    if (shaped) return fmt::format("the job runs no {} over {}", store::toText(key.op), groupText(key.shape));
    return fmt::format("no group of the job is of {}{}", groupText(key.shape),
                       groups.empty() ? std::string() : fmt::format("; its groups are of {}", fmt::join(groups, ", ")));
}

}  // namespace

std::string CollectiveCost::whyUnused(const CostCurve& curve, const facts::TraceFacts& facts) const {
    const CurveKey& key = curve.key;
    const Sent sent = sentBy(facts);
    if (std::string why = elsewhere(sent, key); !why.empty()) return why;
    const auto& sizes = sent.at({key.shape, key.op});
    const bool anyAt = std::ranges::any_of(sizes, [&](const auto& one) { return curve.at(one.first).has_value(); });
    if (!anyAt)
        return fmt::format("it has {} to {}, the job sends {} to {}", text::bytesText(curve.sizes.smallestBytes()),
                           text::bytesText(curve.sizes.largestBytes()), text::bytesText(sizes.begin()->first),
                           text::bytesText(sizes.rbegin()->first));
    std::set<std::string> alone;
    bool known = false, stands = false;
    for (const auto& [bytes, choice] : sizes) {
        if (!choice.known()) continue;
        known = true;
        const CostCurve* present = presentTable(messageOf(key.shape, key.op, bytes, choice));
        if (present == nullptr) {
            alone.insert(choiceText(choice));
            continue;
        }
        // Two tables make a comparison, of which this one is a side.
        if (present != &curve && curve.at(bytes)) return {};
        stands = stands || present == &curve;
        if (present == &curve && std::ranges::any_of(m_evidence.curves(), [&, size = bytes](const auto& other) {
                const CurveKey& of = other.first;
                return of.from == EvidenceFrom::ncclTests && of.shape == key.shape && of.op == key.op &&
                       &other.second != &curve && other.second.at(size);
            }))
            return {};
    }
    if (&curve == settingTable(key.shape, key.op)) return {};  // sizes that the job does not send are read off it
    if (!known) return "which algorithm and protocol the job's messages ran with is not recorded";
    if (stands) return "it has what the job runs now, and no other table says what another setting takes";
    return fmt::format(
        "no table has what the job runs now ({}), which this one could be compared with: run the test "
        "once as the job runs, without variables that it does not set",
        fmt::join(alone, ", "));
}

std::vector<TableNote> CollectiveCost::tableNotes(const facts::TraceFacts& facts) const {
    std::vector<TableNote> notes = m_setAside;
    std::ranges::move(m_evidence.notes(m_version), std::back_inserter(notes));
    for (const NcclTestsTable& table : m_evidence.tables()) {
        if (!table.severalChoices.empty() || !table.noSuchChoice.empty()) continue;
        const CostCurve* curve = m_evidence.find(keyOf(table));
        const bool used = curve != nullptr && std::ranges::count(curve->files, table.file) > 0;
        const std::string why = used ? whyUnused(*curve, facts) : "none of its sizes tells of the links";
        if (!why.empty()) notes.push_back({TableNote::Kind::notUsed, table.file, table.line, why});
    }
    return notes;
}

}  // namespace rankscope::costs
