// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/flight_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/dump_json.h"
#include "collector/importers/dump_tree.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/pickle_reader.h"
#include "collector/importers/rank_of_file.h"

namespace rankscope::collector {

namespace {

/// Recorders keep 2,000 calls by default, about 1 MB with their stacks; this is a thousand times as much.
constexpr size_t kMostBytes = size_t{1} << 30;
/// Steps from value to value, for each byte of the file: shared values may be walked many times.
constexpr size_t kVisitsPerByte = 64;
/// Ranks in all groups together: a thousand groups of 4,096. A pickle may share one list among many groups.
constexpr size_t kMostMembers = size_t{4} << 20;
/// Of a function and its file, as far as they are kept.
constexpr size_t kLongestPlace = 240;
/// A group or an operation with a longer name is damaged.
constexpr size_t kLongestName = 256;

bool isPickle(std::string_view head) {
    return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

/// Keys that no other tool's JSON has; PyTorch's own is sorted by key, so that entries may fill the head.
bool isDumpJson(std::string_view head) {
    head = withoutLeadingSpace(head);
    if (!head.starts_with('{')) return false;
    const auto holds = [head](std::string_view key) { return head.find(key) != std::string_view::npos; };
    if (holds("\"traceEvents\"") || holds("\"schemaVersion\"")) return false;
    const bool groups = holds("\"pg_config\"") || holds("\"pg_status\"");
    return (groups && (holds("\"version\"") || holds("\"entries\"") || holds("\"comm_lib_version\""))) ||
           (holds("\"entries\"") && holds("\"record_id\"") && holds("\"profiling_name\""));
}

/// "[0, 1, 2]", as PyTorch writes the ranks of a group.
std::vector<int32_t> ranksFromText(std::string_view text) {
    std::vector<int32_t> ranks;
    for (size_t at = text.find_first_of("0123456789"); at < text.size(); at = text.find_first_of("0123456789", at)) {
        int32_t rank = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
        if (error != std::errc{}) return {};
        ranks.push_back(rank);
        at = static_cast<size_t>(end - text.data());
    }
    return ranks;
}

std::optional<int32_t> leadingRank(std::string_view text) {
    int32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc{} || rank < 0) return std::nullopt;
    return rank;
}

/// Records are numbered from 0 on, also anew after a reset of the recorder, but each group's calls from 1 on for ever.
bool isFromStart(const std::vector<FlightEntry>& entries) {
    std::set<size_t> groups;
    for (size_t i = 0; i < entries.size(); ++i) {
        const FlightEntry& entry = entries[i];
        if (entry.recordId != static_cast<int64_t>(i)) return false;
        if (groups.insert(entry.group).second && (entry.collectiveSeq > 1 || entry.messageSeq > 1)) return false;
    }
    return !entries.empty();
}

class DumpDecoder {
  public:
    DumpDecoder(const DumpTree& tree, size_t bytes) : m_tree(tree), m_budget(bytes * kVisitsPerByte) {}

    /// False: it unfolds to more than its size warrants.
    bool read(DumpNode root);
    FlightDump take() { return std::move(m_dump); }
    size_t skipped() const { return m_skipped; }

  private:
    void readGroups(DumpNode groups);
    std::vector<int32_t> readRanks(DumpNode ranks);
    void readStatus(DumpNode status);
    void readEntry(DumpNode entry);
    bool readOperation(std::string_view name, FlightEntry& entry);
    size_t groupOf(DumpNode entry);
    std::optional<int64_t> elements(DumpNode sizes);
    store::DataType dataType(DumpNode entry);
    std::string place(DumpNode frames);
    DumpNode at(DumpNode dictionary, std::string_view key) {
        visit(m_tree.children(dictionary).size());
        return m_tree.at(dictionary, key);
    }
    void visit(size_t nodes) { m_budget -= std::min(m_budget, nodes + 1); }

    const DumpTree& m_tree;
    size_t m_budget;
    FlightDump m_dump;
    std::map<std::pair<std::string, std::string>, size_t> m_groupOf;  // by name and description
    std::map<int64_t, size_t> m_groupOfLocalId;                       // as entries tell it
    size_t m_members = 0;                                             // of all groups
    size_t m_skipped = 0;
};

std::vector<int32_t> DumpDecoder::readRanks(DumpNode ranks) {
    if (!m_tree.isList(ranks)) return ranksFromText(m_tree.text(ranks));
    std::vector<int32_t> result;
    for (const DumpNode rank : m_tree.children(ranks)) {
        visit(1);
        const auto number = m_tree.integer(rank);
        if (!number || *number < 0 || *number > INT32_MAX) return {};
        result.push_back(static_cast<int32_t>(*number));
    }
    return result;
}

void DumpDecoder::readGroups(DumpNode groups) {
    const std::span<const DumpNode> pairs = m_tree.children(groups);
    m_dump.knowsGroups = m_tree.isDictionary(groups);
    if (!m_dump.knowsGroups) return;
    for (size_t i = 0; i + 1 < pairs.size() && m_budget > 0; i += 2) {
        FlightGroup group;
        group.name = std::string(m_tree.text(pairs[i]).substr(0, kLongestName));
        group.description = std::string(m_tree.text(at(pairs[i + 1], "desc")).substr(0, kLongestName));
        if (group.description == "undefined") group.description.clear();
        group.ranks = readRanks(at(pairs[i + 1], "ranks"));
        m_members += group.ranks.size();
        if (m_members > kMostMembers) m_budget = 0;
        std::vector<int32_t> sorted = group.ranks;
        std::ranges::sort(sorted);
        if (std::ranges::adjacent_find(sorted) != sorted.end()) group.ranks.clear();
        if (m_groupOf.try_emplace({group.name, group.description}, m_dump.groups.size()).second)
            m_dump.groups.push_back(std::move(group));
    }
}

size_t DumpDecoder::groupOf(DumpNode entry) {
    std::string name, description;
    const DumpNode told = at(entry, "process_group");
    if (const auto pair = m_tree.children(told); m_tree.isList(told) && !pair.empty()) {
        name = std::string(m_tree.text(pair[0]).substr(0, kLongestName));
        if (pair.size() > 1) description = std::string(m_tree.text(pair[1]).substr(0, kLongestName));
    } else {
        // Dumps before version 2.0 tell the name, or nothing but the number of the group in the process.
        name = std::string(m_tree.text(at(entry, "pg_name")).substr(0, kLongestName));
        if (name.empty()) name = std::to_string(m_tree.integer(at(entry, "pg_id")).value_or(0));
    }
    if (description == "undefined") description.clear();
    // Descriptions were added later than names, and to entries later than to pg_config.
    auto known = m_groupOf.find({name, description});
    if (known == m_groupOf.end()) {
        const auto first = m_groupOf.lower_bound({name, ""});
        if (first != m_groupOf.end() && first->first.first == name &&
            (description.empty() || first->first.second.empty()))
            known = first;
    }
    if (known != m_groupOf.end()) return known->second;
    m_groupOf[{name, description}] = m_dump.groups.size();
    m_dump.groups.push_back({name, description, {}, {}, {}});
    return m_dump.groups.size() - 1;
}

/// Elements of all tensors of a list of shapes; a shape without dimensions is one element.
std::optional<int64_t> DumpDecoder::elements(DumpNode sizes) {
    if (!m_tree.isList(sizes) || m_tree.children(sizes).empty()) return std::nullopt;
    int64_t total = 0;
    for (const DumpNode shape : m_tree.children(sizes)) {
        if (!m_tree.isList(shape)) return std::nullopt;
        int64_t count = 1;
        visit(m_tree.children(shape).size());
        if (m_budget == 0) return std::nullopt;
        for (const DumpNode extent : m_tree.children(shape)) {
            const auto number = m_tree.integer(extent);
            if (!number || *number < 0 || __builtin_mul_overflow(count, *number, &count)) return std::nullopt;
        }
        if (__builtin_add_overflow(total, count, &total)) return std::nullopt;
    }
    return total;
}

/// Of the first tensor: those of a call are of one type.
store::DataType DumpDecoder::dataType(DumpNode entry) {
    for (const char* key : {"input_dtypes", "output_dtypes"}) {
        const std::span<const DumpNode> types = m_tree.children(at(entry, key));
        if (types.empty()) continue;
        const auto type = dataTypeFromTorchName(m_tree.text(types.front()));
        if (type != store::DataType::unknown) return type;
    }
    return store::DataType::unknown;
}

/// Frames begin with the innermost. What PyTorch's own files do on the way tells a reader nothing.
std::string DumpDecoder::place(DumpNode frames) {
    std::string inside;
    for (const DumpNode frame : m_tree.children(frames)) {
        const std::string_view file = m_tree.text(at(frame, "filename"));
        if (m_budget == 0) break;
        if (!file.ends_with(".py")) continue;
        const bool isTorch = file.find("/torch/") != std::string_view::npos || file.starts_with("torch/");
        if (isTorch && !inside.empty()) continue;
        std::string_view name = m_tree.text(at(frame, "name"));
        std::string text = fmt::format("{} ({}:{})", name.substr(0, kLongestName),
                                       file.substr(file.size() - std::min(file.size(), kLongestPlace)),
                                       m_tree.integer(at(frame, "line")).value_or(0));
        if (!isTorch) return text;
        inside = std::move(text);
    }
    return inside;
}

/// "nccl:all_reduce", "nccl:send 0->3", "nccl:recv 0<-3"; other back ends write their own name in front.
bool DumpDecoder::readOperation(std::string_view name, FlightEntry& entry) {
    const size_t colon = name.find(':');
    if (colon == std::string_view::npos || name.size() > kLongestName) return false;
    name.remove_prefix(colon + 1);
    const size_t blank = name.find(' ');
    entry.operation = std::string(name.substr(0, blank));
    if (blank == std::string_view::npos) return !entry.operation.empty();
    const std::string_view ends = name.substr(blank + 1);
    entry.own = leadingRank(ends);
    const size_t arrow = ends.find_first_of("-<");
    if (arrow != std::string_view::npos && arrow + 2 <= ends.size()) entry.peer = leadingRank(ends.substr(arrow + 2));
    return !entry.operation.empty();
}

void DumpDecoder::readEntry(DumpNode node) {
    FlightEntry entry;
    const auto number = [&](const char* key) { return m_tree.integer(at(node, key)); };
    const auto seq = number("collective_seq_id"), legacySeq = number("seq_id");
    const std::string_view state = m_tree.text(at(node, "state"));
    if (!m_tree.isDictionary(node) || !readOperation(m_tree.text(at(node, "profiling_name")), entry) ||
        (!seq && !legacySeq) || seq.value_or(0) < 0 || (!seq && *legacySeq < 0) || state.empty()) {
        ++m_skipped;
        return;
    }
    entry.recordId = number("record_id").value_or(static_cast<int64_t>(m_dump.entries.size()));
    entry.collectiveSeq = seq ? *seq : *legacySeq;
    entry.messageSeq = number("p2p_seq_id").value_or(0);
    const bool named = entry.operation == "send" || entry.operation == "recv" || entry.operation == "recvAnySource";
    entry.isMessage = m_tree.boolean(at(node, "is_p2p")).value_or(named) || named;
    entry.createdNs = number("time_created_ns").value_or(0);
    // JSON has 0 where the pickle has None.
    const auto time = [&](const char* key) {
        const auto value = number(key);
        return value && *value > 0 ? value : std::nullopt;
    };
    entry.startedNs = time("time_discovered_started_ns");
    entry.completedNs = time("time_discovered_completed_ns");
    entry.state = state == "completed" || entry.completedNs ? FlightState::completed
                  : state == "started" || entry.startedNs   ? FlightState::started
                                                            : FlightState::scheduled;
    if (const auto ms = number("timeout_ms"); ms && *ms > 0 && *ms < INT64_MAX / 1'000'000)
        entry.timeoutNs = *ms * 1'000'000;
    entry.inElements = elements(at(node, "input_sizes"));
    entry.outElements = elements(at(node, "output_sizes"));
    entry.dataType = dataType(node);
    entry.place = place(at(node, "frames"));
    entry.group = groupOf(node);
    if (const auto local = number("pg_id")) m_groupOfLocalId.try_emplace(*local, entry.group);
    m_dump.entries.push_back(std::move(entry));
}

/// pg_status counts by a number that only the process knows. Entries tell some of the groups that stand for it; the
/// others follow from the order, since both kinds of number were given when the groups were made.
void DumpDecoder::readStatus(DumpNode status) {
    struct Counters {
        std::optional<int64_t> enqueued, completed;
    };
    std::map<int64_t, Counters> counters;
    const std::span<const DumpNode> pairs = m_tree.children(status);
    if (!m_tree.isDictionary(status)) return;
    for (size_t i = 0; i + 1 < pairs.size() && m_budget > 0; i += 2) {
        const auto id = m_tree.integer(pairs[i]);
        if (id)
            counters[*id] = {m_tree.integer(at(pairs[i + 1], "last_enqueued_collective")),
                             m_tree.integer(at(pairs[i + 1], "last_completed_collective"))};
    }
    std::vector<std::pair<int64_t, size_t>> byName;  // groups whose names are numbers
    for (size_t i = 0; i < m_dump.groups.size(); ++i) {
        int64_t name = 0;
        const std::string& text = m_dump.groups[i].name;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), name);
        if (error == std::errc{} && end == text.data() + text.size()) byName.emplace_back(name, i);
    }
    std::ranges::sort(byName);
    std::map<int64_t, size_t> groupOfId = m_groupOfLocalId;
    if (byName.size() == m_dump.groups.size() && byName.size() == counters.size()) {
        std::map<int64_t, size_t> inOrder;
        size_t next = 0;
        for (const auto& [id, unused] : counters) inOrder[id] = byName[next++].second;
        const bool fits = std::ranges::all_of(m_groupOfLocalId, [&](const auto& told) {
            const auto at = inOrder.find(told.first);
            return at != inOrder.end() && at->second == told.second;
        });
        if (fits) groupOfId = std::move(inOrder);
    }
    for (const auto& [id, counted] : counters) {
        const auto group = groupOfId.find(id);
        if (group == groupOfId.end()) continue;
        // -1 before the first one.
        if (counted.enqueued && *counted.enqueued >= 0) m_dump.groups[group->second].lastEnqueued = counted.enqueued;
        if (counted.completed && *counted.completed >= 0)
            m_dump.groups[group->second].lastCompleted = counted.completed;
    }
}

bool DumpDecoder::read(DumpNode root) {
    m_dump.version = std::string(m_tree.text(at(root, "version")).substr(0, kLongestName));
    for (const char* key : {"nccl_version", "comm_lib_version"})
        if (const DumpNode version = at(root, key); version != DumpTree::kNone)
            m_dump.ncclVersion = std::string(m_tree.text(version).substr(0, kLongestName));
    readGroups(at(root, "pg_config"));
    // The first dumps were lists of entries.
    const DumpNode entries = m_tree.isList(root) ? root : at(root, "entries");
    for (const DumpNode entry : m_tree.children(entries)) {
        if (m_budget == 0) return false;
        readEntry(entry);
    }
    std::ranges::stable_sort(m_dump.entries, {}, &FlightEntry::recordId);
    m_dump.fromStart = isFromStart(m_dump.entries) && m_skipped == 0;
    readStatus(at(root, "pg_status"));
    return m_budget > 0;
}

}  // namespace

bool isFlightDump(std::string_view head) {
    return isPickle(head) || isDumpJson(head);
}

FlightDump readFlightDump(const std::filesystem::path& file, ImportLosses& losses) {
    InputFile input(file);
    const std::string text = wholeText(input, kMostBytes, "any dump of a flight recorder");
    std::string damage = input.damage();
    DumpTree tree;
    DumpJson json;
    PickleResult pickle;
    DumpNode root = DumpTree::kNone;
    bool cut = !damage.empty();
    size_t cutAt = text.size();
    if (isPickle(text)) {
        pickle = readPickle(text, tree);
        if (pickle.state == PickleResult::State::refused)
            throw ImportError(file, pickle.offset, "this pickle is not read: " + pickle.problem,
                              "a dump of PyTorch's flight recorder holds data only; write it with "
                              "torch._C._distributed_c10d._dump_nccl_trace, or let the watchdog write it");
        root = pickle.root;
        if (pickle.state == PickleResult::State::cut) {
            cut = true;
            cutAt = pickle.offset;
            if (damage.empty()) damage = pickle.problem;
        }
    } else {
        json = readDumpJson(text, tree);
        root = json.root;
        cut = cut || json.cut;
        if (damage.empty()) damage = json.problem;
    }
    DumpDecoder decoder(tree, text.size());
    if (!tree.isDictionary(root) && !tree.isList(root))
        throw ImportError(file, cutAt,
                          damage.empty() ? "it holds no dictionary, as dumps of PyTorch's flight recorder do"
                                         : "nothing of it can be read: " + damage,
                          "");
    if (!decoder.read(root))
        throw ImportError(file, 0, "it unfolds to far more than its size",
                          "it is no dump of PyTorch's flight recorder");
    const size_t skipped = decoder.skipped();
    FlightDump dump = decoder.take();
    // A rank that never communicated has neither, but says so.
    if (dump.entries.empty() && !dump.knowsGroups && tree.at(root, "entries") == DumpTree::kNone)
        throw ImportError(file, 0,
                          "neither calls (\"entries\") nor process groups (\"pg_config\") stand in it" +
                              (damage.empty() ? std::string() : "; " + damage),
                          "expected a dump of PyTorch's flight recorder");
    dump.isWhole = !cut;
    if (cut) {
        dump.fromStart = false;
        dump.knowsGroups = dump.knowsGroups && !dump.entries.empty();  // the cut may go through them
        losses.add("torn_tail", "warning", cutAt,
                   "the dump is cut off (" + damage + "): the calls behind the cut, the last ones, are missing");
    }
    // The one that the cut went through is told with it.
    if (skipped > (cut ? 1u : 0u))
        losses.add("bad_record", "warning", std::nullopt,
                   "calls whose operation, number or state cannot be read were left out",
                   static_cast<int64_t>(skipped));
    if (!dump.knowsGroups && !dump.entries.empty())
        losses.add("groups_unknown", "info", std::nullopt,
                   "the dump does not tell the members of its process groups (pg_config), as those before version 2.0 "
                   "and cut ones do not: they are taken from the other ranks' dumps");
    return dump;
}

std::optional<int32_t> rankOfDump(const FlightDump& dump, std::string_view fileName) {
    for (const FlightEntry& entry : dump.entries) {
        const std::vector<int32_t>& ranks = dump.groups[entry.group].ranks;
        if (entry.own && static_cast<size_t>(*entry.own) < ranks.size()) return ranks[static_cast<size_t>(*entry.own)];
    }
    std::optional<std::set<int32_t>> common;
    for (const FlightGroup& group : dump.groups) {
        if (group.ranks.empty()) continue;
        std::set<int32_t> members(group.ranks.begin(), group.ranks.end());
        if (common) std::erase_if(*common, [&](int32_t rank) { return !members.contains(rank); });
        if (!common) common = std::move(members);
    }
    const auto isMember = [&](std::optional<int32_t> rank) { return rank && (!common || common->contains(*rank)); };
    // "rank3_attempt0": what the name calls the rank. Else "_dump_12": the last number in front of the endings.
    if (const std::optional<int32_t> called = rankFromFileName(fileName))
        return isMember(called) ? called : std::nullopt;
    for (const std::string_view ending : {".gz", ".json", ".pickle", ".pkl"})
        if (fileName.ends_with(ending)) fileName.remove_suffix(ending.size());
    size_t digits = fileName.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(fileName[digits - 1])) != 0) --digits;
    const std::optional<int32_t> named = leadingRank(fileName.substr(digits));
    if (isMember(named)) return named;
    if (common && common->size() == 1) return *common->begin();
    return std::nullopt;
}

}  // namespace rankscope::collector
