// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/mapped_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/dump_json.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"

namespace rankscope::collector {

namespace {

/// Such a file is held in memory as a tree, of about six times its size.
constexpr size_t kMostMappedBytes = size_t{1} << 30;
/// 73 years, so that sums of a few such times do not overflow.
constexpr long double kMostMappedNs = 2.3e18L;

std::optional<int64_t> numberIn(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// How it is compressed is no part of what a name tells.
std::string inflatedName(const std::filesystem::path& file) {
    return file.extension() == ".gz" ? file.stem().string() : file.filename().string();
}

class MappedFile {
  public:
    MappedFile(const TraceMapping& mapping, const std::filesystem::path& file, const DumpTree& tree)
        : m_mapping(mapping), m_fileName(inflatedName(file)), m_tree(tree) {}

    void read(DumpNode root) {
        if (m_mapping.shape == TraceMapping::Shape::lists) {
            readLists(root);
        } else {
            readChrome(m_tree.isDictionary(root) ? m_tree.at(root, "traceEvents") : root);
        }
    }

    MappedEvents take() {
        if (m_unknown > 0)
            m_result.losses.add("source_absent", "warning", std::nullopt,
                                "events are left out whose name the mapping does not know, the first of them \"" +
                                    m_firstUnknown + "\"",
                                m_unknown);
        return std::move(m_result);
    }

  private:
    void readChrome(DumpNode events) {
        for (const DumpNode event : m_tree.children(events)) {
            if (m_tree.text(m_tree.at(event, "ph")) != "M") continue;
            const std::string pid = plain(m_tree.at(event, "pid")), tid = plain(m_tree.at(event, "tid"));
            const std::string name = plain(m_tree.at(m_tree.at(event, "args"), "name"));
            const std::string_view what = m_tree.text(m_tree.at(event, "name"));
            if (what == "process_name") m_processNames[pid] = name;
            if (what == "thread_name") m_threadNames[{pid, tid}] = name;
        }
        for (const DumpNode event : m_tree.children(events)) {
            if (m_tree.text(m_tree.at(event, "ph")) != "X") continue;
            ++m_result.seen;
            const std::string_view name = m_tree.text(m_tree.at(event, "name"));
            const Told told = toldBy(event, "");
            const std::optional<size_t> rule = ruleOf(name, told.lane);
            if (!rule || m_mapping.rules[*rule].kind == MappingRule::Kind::ignored) continue;
            const auto start = nanoseconds(m_tree.at(event, "ts")), length = nanoseconds(m_tree.at(event, "dur"));
            add(*rule, name, start, start && length ? std::optional(*start + *length) : std::nullopt, told);
        }
    }

    void readLists(DumpNode root) {
        const auto members = m_tree.children(root);
        for (size_t i = 0; i + 1 < members.size() && m_tree.isDictionary(root); i += 2) {
            const std::string_view key = m_tree.text(members[i]);
            for (size_t rule = 0; rule < m_mapping.rules.size(); ++rule) {
                const MappingRule& told = m_mapping.rules[rule];
                const auto starts = m_tree.children(m_tree.at(members[i + 1], told.start));
                const auto ends = m_tree.children(m_tree.at(members[i + 1], told.end));
                if (starts.size() != ends.size())
                    m_result.losses.add("bad_block", "warning", std::nullopt,
                                        "\"" + told.start + "\" and \"" + told.end +
                                            "\" are not equally long: what one of them does not tell is left out");
                for (size_t k = 0; k < std::min(starts.size(), ends.size()); ++k) {
                    ++m_result.seen;
                    if (told.kind != MappingRule::Kind::ignored)
                        add(rule, told.name, nanoseconds(starts[k]), nanoseconds(ends[k]),
                            toldBy(DumpTree::kNone, key));
                }
            }
        }
    }

    /// What texts tell of an event beside its name and times.
    struct Told {
        RankPlace place;  // -1 where nothing tells
        std::string lane;
        std::optional<int64_t> step;
    };

    Told toldBy(DumpNode event, std::string_view key) const {
        Told told{RankPlace(m_mapping.axes.size(), -1), plain(m_tree.at(event, "tid")), {}};
        for (const MappingPlace& tells : m_mapping.tells) {
            const auto taken = tells.pattern.match(fieldOf(tells.field, event, key));
            if (!taken) continue;
            for (const auto& [gap, text] : *taken) {
                if (gap == "lane") told.lane = text;
                if (gap == "step") told.step = numberIn(text);
                const auto axis = std::ranges::find(m_mapping.axes, gap);
                if (axis != m_mapping.axes.end())
                    told.place[static_cast<size_t>(axis - m_mapping.axes.begin())] = numberIn(text).value_or(-1);
            }
        }
        return told;
    }

    std::optional<size_t> ruleOf(std::string_view name, std::string_view lane) {
        for (size_t i = 0; i < m_mapping.rules.size(); ++i) {
            const MappingRule& rule = m_mapping.rules[i];
            if ((!rule.lane || rule.lane->match(lane)) && rule.pattern.match(name)) return i;
        }
        if (m_unknown++ == 0) m_firstUnknown = name;
        return std::nullopt;
    }

    std::optional<int64_t> nanoseconds(DumpNode node) const {
        const auto told = m_tree.number(node);
        if (!told) return std::nullopt;
        const long double ns = *told * static_cast<long double>(m_mapping.unitNs);
        if (!(std::abs(ns) < kMostMappedNs)) return std::nullopt;
        return static_cast<int64_t>(std::llround(ns));
    }

    /// A text or an integer as a text.
    std::string plain(DumpNode node) const {
        const auto number = m_tree.integer(node);
        return number ? std::to_string(*number) : std::string(m_tree.text(node));
    }

    /// The text of a field; of an event's members those inside are told by dots ("args.step").
    std::string fieldOf(const std::string& field, DumpNode event, std::string_view key) const {
        if (field == "file_name") return m_fileName;
        if (field == "key") return std::string(key);
        const std::string pid = plain(m_tree.at(event, "pid"));
        if (field == "process_name") {
            const auto name = m_processNames.find(pid);
            return name == m_processNames.end() ? std::string() : name->second;
        }
        if (field == "thread_name") {
            const auto name = m_threadNames.find({pid, plain(m_tree.at(event, "tid"))});
            return name == m_threadNames.end() ? std::string() : name->second;
        }
        DumpNode node = event;
        for (size_t at = 0; at != std::string::npos;) {
            const size_t dot = field.find('.', at);
            node = m_tree.at(node, std::string_view(field).substr(at, dot - at));
            at = dot == std::string::npos ? dot : dot + 1;
        }
        return plain(node);
    }

    void add(size_t rule, std::string_view name, std::optional<int64_t> startNs, std::optional<int64_t> endNs,
             const Told& told) {
        if (!startNs || !endNs || *endNs < *startNs) {
            m_result.losses.add("bad_block", "warning", std::nullopt,
                                "events without a start or a length, or that end before they start, are left out");
            return;
        }
        MappedEvent mapped;
        mapped.place = told.place;
        mapped.step = told.step;
        mapped.rule = rule;
        mapped.startNs = *startNs;
        mapped.durNs = *endNs - *startNs;
        for (size_t axis = 0; axis < mapped.place.size(); ++axis)
            if (mapped.place[axis] < 0 || mapped.place[axis] >= kMostRanks) return leaveOut(m_mapping.axes[axis]);
        if (m_mapping.stepTimes != TraceMapping::StepTimes::continued && !mapped.step) return leaveOut("step");
        mapped.lane = m_result.texts.intern(told.lane);
        mapped.name = m_result.texts.intern(name);
        m_result.events.push_back(std::move(mapped));
    }

    void leaveOut(const std::string& untold) {
        m_result.losses.add("bad_block", "warning", std::nullopt,
                            "events are left out of which nothing tells {" + untold + "}");
    }

    const TraceMapping& m_mapping;
    std::string m_fileName;
    const DumpTree& m_tree;
    std::map<std::string, std::string> m_processNames;                         // by pid
    std::map<std::pair<std::string, std::string>, std::string> m_threadNames;  // by pid and tid
    MappedEvents m_result;
    int64_t m_unknown = 0;
    std::string m_firstUnknown;
};

}  // namespace

MappedEvents readMappedEvents(const TraceMapping& mapping, const std::filesystem::path& file) {
    InputFile input(file);
    const std::string text = wholeText(input, kMostMappedBytes, "what is read by a mapping");
    DumpTree tree;
    const DumpJson json = readDumpJson(text, tree);
    if (json.root == DumpTree::kNone)
        throw ImportError(file, 0, "nothing of it can be read as JSON: " + json.problem, "");
    MappedFile reader(mapping, file, tree);
    reader.read(json.root);
    MappedEvents result = reader.take();
    if (json.cut || !input.damage().empty())
        result.losses.add("torn_tail", "error", text.size(),
                          "the file is cut off (" + (input.damage().empty() ? json.problem : input.damage()) +
                              "); the events in front of that are imported");
    if (!result.events.empty()) return result;
    const std::string why = result.losses.all().empty() ? std::string() : ": " + result.losses.all().front().message;
    throw ImportError(file, 0, "no event in it is one that " + mapping.file.string() + " knows" + why,
                      "docs/mappings.md says what stands in a mapping");
}

}  // namespace rankscope::collector
