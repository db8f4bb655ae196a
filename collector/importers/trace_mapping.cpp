// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/trace_mapping.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "collector/importers/dump_json.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"

namespace rankscope::collector {

namespace {

/// A mapping is written by hand.
constexpr size_t kMostMappingBytes = size_t{1} << 20;
/// The mapping's own version, which its first member tells.
constexpr int64_t kVersion = 1;
/// Data, tensor, pipeline, context and expert parallel, and three that are not invented yet.
constexpr size_t kMostAxes = 8;

constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

class MappingDecoder {
  public:
    MappingDecoder(const std::filesystem::path& file, const DumpTree& tree, DumpNode root)
        : m_file(file), m_tree(tree), m_root(root) {}

    TraceMapping decode() {
        if (numberOf(m_root, "rankscope_mapping", "") != kVersion)
            fail("\"rankscope_mapping\": 1 does not stand in it");
        refuseUnknown(
            m_root,
            {"rankscope_mapping", "about", "shape", "time_unit", "step_times", "axes", "tells", "events", "pipelines"},
            "");
        textOf(m_root, "about");
        m_mapping.file = m_file;
        const std::string shape = choice(m_root, "shape", {"chrome", "lists"});
        m_mapping.shape = shape == "lists" ? TraceMapping::Shape::lists : TraceMapping::Shape::chrome;
        const std::string times = choice(m_root, "step_times", {"continue", "restart", "sampled"});
        if (times == "restart") m_mapping.stepTimes = TraceMapping::StepTimes::restart;
        if (times == "sampled") m_mapping.stepTimes = TraceMapping::StepTimes::sampled;
        readUnit();
        readAxes();
        readTells();
        readRules();
        readPipelines();
        return std::move(m_mapping);
    }

  private:
    [[noreturn]] void fail(const std::string& cause) const {
        throw ImportError(m_file, 0, "this is no mapping: " + cause, "docs/mappings.md says what stands in one");
    }

    /// A member that is of another type than its value must have.
    [[noreturn]] void failType(std::string_view member, const char* type, const std::string& where) const {
        fail("\"" + std::string(member) + "\" is no " + type + where);
    }

    bool is(DumpNode node, DumpTree::Kind kind) const { return node != DumpTree::kNone && m_tree.kind(node) == kind; }

    /// Empty where the member is missing.
    std::string textOf(DumpNode node, std::string_view member, const std::string& where = "") const {
        const DumpNode value = m_tree.at(node, member);
        if (value == DumpTree::kNone) return {};
        if (!is(value, DumpTree::Kind::text)) failType(member, "text", where);
        return std::string(m_tree.text(value));
    }

    std::optional<int64_t> numberOf(DumpNode node, std::string_view member, const std::string& where) const {
        const DumpNode value = m_tree.at(node, member);
        if (value == DumpTree::kNone) return std::nullopt;
        if (!is(value, DumpTree::Kind::integer)) failType(member, "whole number", where);
        return m_tree.integer(value);
    }

    /// The texts of a list; none where the member is missing.
    std::vector<std::string> textsOf(DumpNode node, std::string_view member, const std::string& where) const {
        const DumpNode value = m_tree.at(node, member);
        if (value == DumpTree::kNone) return {};
        if (!m_tree.isList(value)) failType(member, "list", where);
        std::vector<std::string> texts;
        for (const DumpNode text : m_tree.children(value)) {
            if (!is(text, DumpTree::Kind::text)) failType(member, "list of texts", where);
            texts.emplace_back(m_tree.text(text));
        }
        return texts;
    }

    void refuseUnknown(DumpNode node, std::initializer_list<std::string_view> known, const std::string& where) const {
        const auto children = m_tree.children(node);
        for (size_t i = 0; i + 1 < children.size(); i += 2) {
            const std::string_view member = m_tree.text(children[i]);
            if (std::ranges::find(known, member) == known.end())
                fail("\"" + std::string(member) + "\" is not known" + where);
        }
    }

    /// One of the words, the first where none is told.
    std::string choice(DumpNode node, std::string_view member, std::initializer_list<std::string_view> words) const {
        if (m_tree.at(node, member) == DumpTree::kNone) return std::string(*words.begin());
        const std::string told = textOf(node, member);
        if (std::ranges::find(words, told) == words.end()) {
            std::string all;
            for (const std::string_view word : words) all += (all.empty() ? "" : ", ") + std::string(word);
            fail("\"" + std::string(member) + "\" is none of " + all);
        }
        return told;
    }

    TextPattern patternOf(const std::string& text) const {
        try {
            return TextPattern(text);
        } catch (const std::invalid_argument& error) {
            fail(error.what());
        }
    }

    void readUnit() {
        const std::string unit = choice(m_root, "time_unit", {"us", "ns", "ms", "s"});
        m_mapping.unitNs =
            std::ranges::find(kUnits, std::string_view(unit), &std::pair<std::string_view, double>::first)->second;
    }

    void readAxes() {
        for (const std::string& name : textsOf(m_root, "axes", "")) {
            if (name.empty() || name == "lane" || name == "step" ||
                std::ranges::find(m_mapping.axes, name) != m_mapping.axes.end())
                fail("\"axes\" are names of their own, other than lane and step");
            m_mapping.axes.push_back(name);
        }
        if (m_mapping.axes.empty() || m_mapping.axes.size() > kMostAxes)
            fail("\"axes\" is no list of one to " + std::to_string(kMostAxes) + " names");
    }

    size_t axisOf(std::string_view name) const {
        const auto axis = std::ranges::find(m_mapping.axes, name);
        if (axis == m_mapping.axes.end()) fail("\"" + std::string(name) + "\" is none of its axes");
        return static_cast<size_t>(axis - m_mapping.axes.begin());
    }

    std::vector<size_t> axesOf(DumpNode node, std::string_view member, const std::string& where) const {
        std::vector<size_t> axes;
        for (const std::string& axis : textsOf(node, member, where)) axes.push_back(axisOf(axis));
        return axes;
    }

    void readTells() {
        const DumpNode list = m_tree.at(m_root, "tells");
        if (!m_tree.isDictionary(list)) failType("tells", "object of fields and patterns", "");
        const auto tells = m_tree.children(list);
        std::vector<std::string> told;
        for (size_t i = 0; i + 1 < tells.size(); i += 2) {
            if (!is(tells[i + 1], DumpTree::Kind::text)) failType(m_tree.text(tells[i]), "text", " in \"tells\"");
            MappingPlace place{std::string(m_tree.text(tells[i])), patternOf(std::string(m_tree.text(tells[i + 1])))};
            for (const std::string& gap : place.pattern.gaps()) {
                if (gap != "lane" && gap != "step") axisOf(gap);
                told.push_back(gap);
            }
            m_mapping.tells.push_back(std::move(place));
        }
        for (const std::string& axis : m_mapping.axes)
            if (std::ranges::find(told, axis) == told.end()) fail("nothing in \"tells\" tells {" + axis + "}");
        if (m_mapping.stepTimes != TraceMapping::StepTimes::continued && std::ranges::find(told, "step") == told.end())
            fail("\"step_times\" do not continue, but nothing in \"tells\" tells {step}");
    }

    void readRules() {
        const DumpNode events = m_tree.at(m_root, "events");
        if (!m_tree.isList(events)) failType("events", "list of what events of a name are", "");
        for (const DumpNode event : m_tree.children(events)) readRule(event);
        if (m_mapping.rules.empty()) fail("\"events\" is no list of what events of a name are");
    }

    void readRule(DumpNode node) {
        if (!m_tree.isDictionary(node)) fail("one of \"events\" is no object");
        const std::string name = textOf(node, "name", " of one of \"events\"");
        if (name.empty()) fail("one of \"events\" has no \"name\"");
        const std::string where = " of events \"" + name + "\"";
        refuseUnknown(node, {"name", "lane", "kind", "differs", "along", "group", "peer", "start", "end"}, where);
        MappingRule rule{name, patternOf(name), {}, {}, {}, {}, {}, {}, {}, {}, {}};
        if (m_tree.at(node, "lane") != DumpTree::kNone) rule.lane = patternOf(textOf(node, "lane", where));
        setKind(textOf(node, "kind", where), where, rule);
        rule.differs = axesOf(node, "differs", where);
        rule.along = axesOf(node, "along", where);
        rule.group = textOf(node, "group", where);
        rule.peer = numberOf(node, "peer", where).value_or(0);
        rule.start = textOf(node, "start", where);
        rule.end = textOf(node, "end", where);
        if (rule.kind == MappingRule::Kind::collective && rule.along.empty())
            fail("\"along\" does not name the axes of the group" + where);
        if (rule.kind == MappingRule::Kind::message && (rule.along.size() != 1 || rule.peer == 0))
            fail("\"along\" names no single axis, or \"peer\" not how far on it the other side is" + where);
        if (m_mapping.shape == TraceMapping::Shape::lists && (rule.start.empty() || rule.end.empty()))
            fail("\"start\" and \"end\" do not name the lists of times" + where);
        m_mapping.rules.push_back(std::move(rule));
    }

    void readPipelines() {
        const DumpNode node = m_tree.at(m_root, "pipelines");
        if (node == DumpTree::kNone) return;
        if (!m_tree.isDictionary(node)) failType("pipelines", "object", "");
        const std::string where = " of \"pipelines\"";
        refuseUnknown(node, {"axis", "forward", "backward"}, where);
        m_mapping.pipelines = {axisOf(textOf(node, "axis", where)), textOf(node, "forward", where),
                               textOf(node, "backward", where)};
        for (const std::string& name : {m_mapping.pipelines->forward, m_mapping.pipelines->backward})
            if (std::ranges::find(m_mapping.rules, name, &MappingRule::name) == m_mapping.rules.end())
                fail("\"forward\" and \"backward\" of pipelines are no names of its events");
    }

    void setKind(const std::string& kind, const std::string& where, MappingRule& rule) const {
        constexpr std::array<std::pair<std::string_view, MappingRule::Kind>, 4> kKinds{
            {{"compute", MappingRule::Kind::compute},
             {"copy", MappingRule::Kind::copy},
             {"range", MappingRule::Kind::range},
             {"ignored", MappingRule::Kind::ignored}}};
        for (const auto& [word, known] : kKinds) {
            rule.kind = known;
            if (kind == word) return;
        }
        rule.op = store::fromText<store::Op>(kind);
        if (rule.op == store::Op::unknown)
            fail("\"kind\" is none of compute, copy, range, ignored, send, recv and the collectives (all_reduce, …)" +
                 where);
        rule.kind = store::isP2p(rule.op) ? MappingRule::Kind::message : MappingRule::Kind::collective;
    }

    const std::filesystem::path& m_file;
    const DumpTree& m_tree;
    DumpNode m_root;
    TraceMapping m_mapping;
};

}  // namespace

TraceMapping readTraceMapping(const std::filesystem::path& file) {
    InputFile input(file);
    const std::string text = wholeText(input, kMostMappingBytes, "a mapping");
    DumpTree tree;
    const DumpJson json = readDumpJson(text, tree);
    if (json.cut || !tree.isDictionary(json.root))
        throw ImportError(file, 0, "this is no mapping: " + (json.problem.empty() ? "no JSON object" : json.problem),
                          "docs/mappings.md says what stands in one");
    return MappingDecoder(file, tree, json.root).decode();
}

}  // namespace rankscope::collector
