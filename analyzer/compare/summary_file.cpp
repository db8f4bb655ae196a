// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/summary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <type_traits>

#include "analyzer/compare/summary_object.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using text::arrayOf;
using text::Json;               // written: the same order every time
using Parsed = nlohmann::json;  // read: a lookup that does not walk all keys

constexpr double kShortestStepNs = 1;          // clocks tick in ns
constexpr int kLargestSizeClass = 31;          // of 4^31 bytes and more: the largest that an int64_t counts
constexpr uintmax_t kLargestFile = 16u << 20;  // some kilobytes per rank: ten thousand of them

/// Times to the nanosecond, other numbers to six digits: a summary is small, and the same on every machine.
double rounded(double value) {
    if (!std::isfinite(value)) return 0;
    if (std::abs(value) >= 1e6) return std::round(value);
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

/// Writes an object member by member, in their order: the counterpart of SummaryReader.
class SummaryWriter {
  public:
    static constexpr bool kReads = false;

    template <typename T>
    void operator()(const char* key, const T& value, double = 0) {
        m_json[key] = jsonOf(value);
    }
    void ifSet(const char* key, bool value) {
        if (value) m_json[key] = true;
    }
    void ifSet(const char* key, int64_t value) {
        if (value != 0) m_json[key] = value;
    }
    void ifSet(const char* key, const std::vector<std::string>& values) {
        if (!values.empty()) m_json[key] = values;
    }
    void ifKnown(const char* key, const std::optional<double>& value) {
        if (value) m_json[key] = jsonOf(*value);
    }
    void orNull(const char* key, const std::optional<double>& value) {
        m_json[key] = value ? jsonOf(*value) : Json(nullptr);
    }
    template <typename Row, typename Members>
    void rows(const char* key, std::vector<Row>& rows, Members&& members) {
        Json& array = m_json[key] = Json::array();
        for (Row& row : rows) {
            SummaryWriter writer;
            members(writer, row);
            array.push_back(std::move(writer.m_json));
        }
    }
    std::string text() const { return text::jsonText(m_json, 1); }

  private:
    template <typename T>
    static Json jsonOf(const T& value) {
        return value;
    }
    static Json jsonOf(double value) { return rounded(value); }
    static Json jsonOf(const std::vector<double>& values) { return arrayOf(values, rounded); }
    static Json jsonOf(const std::map<std::string, double>& values) {
        Json json = Json::object();
        for (const auto& [name, value] : values) json[name] = rounded(value);
        return json;
    }

    Json m_json = Json::object();
};

// The members of each row, in the order of the file, for both ways.

template <typename Row, size_t Size>
void numbers(auto& io, const NumberField<Row> (&fields)[Size], Row& row) {
    for (const NumberField<Row>& field : fields) io(field.name, row.*field.member, field.maySink ? -kLargestNumber : 0);
}

/// Its work is numbers in the order of the summary's kernels, which have the names.
void members(auto& io, RoleSummary& role, const std::vector<KernelSummary>& kernels) {
    io("role", role.role);
    io("rank", role.rank);
    io("stage", role.stage, -1);
    io("host", role.host);
    numbers(io, kRoleNumbers, role);
    io("idle_by_cause_ns", role.idleByCauseNs);
    io("stall_by_cause_ns", role.stallByCauseNs, -kLargestNumber);
    io("path_ns", role.pathNs, -kLargestNumber);
    std::vector<double> ns, blocks;
    for (const KernelSummary& kernel : text::first(kernels, RunSummary::kMostKernelsOfARank)) {
        const KernelWork work = text::valueAt(role.work, kernel.name);
        ns.push_back(work.ns);
        blocks.push_back(work.blocks);
    }
    io("kernel_ns", ns);
    io("kernel_blocks", blocks);
    for (size_t i = 0; i < std::min({ns.size(), blocks.size(), kernels.size()}); ++i)
        if (ns[i] > 0) role.work[kernels[i].name] = {ns[i], blocks[i]};
}

void members(auto& io, TrafficSummary& row) {
    io("use", row.use);
    io("op", row.op);
    io("dtype", row.dataType);
    io("ranks", row.ranks);
    io("nodes", row.nodes);
    io("size_class", row.sizeClass, -1);
    row.sizeClass = std::min(row.sizeClass, kLargestSizeClass);
    numbers(io, kTrafficNumbers, row);
    io("algo", row.algorithm);
    io("proto", row.protocol);
}

void members(auto& io, KernelSummary& kernel) {
    io("name", kernel.name);
    io("count", kernel.count);
    io("ns", kernel.ns);
}

void members(auto& io, FindingSummary& row) {
    io("id", row.id);
    io.ifSet("or", row.alternatives);
    io("title", row.title);
    io("verdict", row.verdict);
    io("ranks", row.ranks);
    io("roles", row.roles);
    io("cause", row.cause);
    io("fix", row.fix);
    io.orNull("cost_ns", row.costNs);
    io.orNull("saving_ns", row.savingNs);
    io("severity", row.severity, -kLargestNumber);
    io.ifKnown("least_share", row.leastShare);
    if constexpr (std::remove_cvref_t<decltype(io)>::kReads)
        if (!io.has("saving_ns")) row.costNs.reset();  // an older version's: it may be either of the two
}

void members(auto& io, report::LossRow& row) {
    io("kind", row.kind);
    io("severity", row.severity);
    io("count", row.count);
    io("what_it_means", row.meaning);
}

/// What a run is known by: the same for every name, label and version of the tool.
void contents(auto& io, RunSummary& summary) {
    const auto each = [](auto& rowIo, auto& row) { members(rowIo, row); };
    io("environment", summary.environment);
    io("hosts", summary.hosts);
    io("steps", summary.steps);
    io("steps_per_sample", summary.stepsPerSample);
    io("steps_ns", summary.stepsNs);
    io.ifKnown("step_p95_ns", summary.slowStepNs);
    if constexpr (std::remove_cvref_t<decltype(io)>::kReads)
        io.rows("kernels", summary.kernels, each);  // roles need them
    io.rows("roles", summary.roles, [&](auto& rowIo, RoleSummary& role) { members(rowIo, role, summary.kernels); });
    io.rows("traffic", summary.traffic, each);
    io("has_path", summary.hasPath);
    io("path_transfer_ns", summary.pathTransferNs, -kLargestNumber);
    io("device_loss", summary.deviceLoss);
    io.rows("kernels", summary.kernels, each);
    io("efficiency", summary.efficiency, -kLargestNumber);
    io.rows("findings", summary.findings, each);
    io.rows("loss", summary.losses, each);
}

void head(auto& io, RunSummary& summary) {
    io("name", summary.name);
    io("label", summary.label);
    io("tool_version", summary.toolVersion);
    io("start_unix_ns", summary.startUnixNs);
    io.ifSet("saved_order", summary.savedOrder);
    io.ifSet("begins_level", summary.beginsLevel);
}

void checkSchema(const Parsed& json, const std::string& origin) {
    const auto schema = json.is_object() ? json.find("schema") : json.end();
    if (schema == json.end() || !schema->is_string())
        throw SummaryError(fmt::format("{}: no summary of a run: it has no schema", origin), kHowItIsMade);
    const std::string name = text::shortened(schema->get_ref<const std::string&>(), 100);
    if (name == kSummarySchema) return;
    if (name.starts_with("rankscope.run-summary/"))
        throw SummaryError(
            fmt::format("{}: written by another version: {}, this one reads {}", origin, name, kSummarySchema),
            "save the baseline anew with this version: rankscope baseline save NAME --dir DIR");
    throw SummaryError(fmt::format("{}: no summary of a run: its schema is {}", origin, name), kHowItIsMade);
}

void checkSteps(const RunSummary& summary, const std::string& origin) {
    for (size_t i = 0; i < summary.stepsNs.size(); ++i)
        if (!std::isfinite(summary.stepsNs[i]) || summary.stepsNs[i] < kShortestStepNs)
            throw SummaryError(
                fmt::format("{}: steps_ns[{}] is not the length of a step: {}", origin, i, summary.stepsNs[i]),
                "save it anew: rankscope baseline save NAME --dir DIR");
    if (summary.stepsPerSample < 1 || summary.steps < static_cast<int>(summary.stepsNs.size()))
        throw SummaryError(fmt::format("{}: {} steps do not fit {} samples of {} steps", origin, summary.steps,
                                       summary.stepsNs.size(), summary.stepsPerSample),
                           "save it anew: rankscope baseline save NAME --dir DIR");
}

}  // namespace

std::string renderSummary(const RunSummary& summary) {
    RunSummary copy = summary;
    SummaryWriter writer;
    writer("schema", std::string(kSummarySchema));
    head(writer, copy);
    contents(writer, copy);
    return writer.text();
}

RunSummary parseSummary(const std::string& text, const std::string& origin) {
    const Parsed json = parseStrictJson(text, origin);
    checkSchema(json, origin);
    const SummaryReader reader(json, "", origin);
    RunSummary summary;
    summary.file = origin;
    summary.fromBaseline = true;
    head(reader, summary);
    contents(reader, summary);
    checkSteps(summary, origin);
    return summary;
}

RunSummary readSummary(const std::filesystem::path& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error && size > kLargestFile)
        throw SummaryError(fmt::format("{}: {} bytes are no summary of a run", file.string(), size), kSaveAnew);
    const auto type = std::filesystem::status(file, error).type();
    if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character)
        throw SummaryError(fmt::format("{}: is a pipe or a device, not a file", file.string()), kSaveAnew);
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream.is_open()) text << stream.rdbuf();
    // Of an empty file nothing is put into the text, which is no error.
    const bool isRead = stream.is_open() && (text || errno == 0);
    if (!isRead)
        throw SummaryError(
            fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno != 0 ? errno : EIO)),
            "see who may read it: ls -l " + text::shellWord(file.string()));
    return parseSummary(text.str(), file.string());
}

std::string summaryId(const RunSummary& summary) {
    RunSummary copy = summary;
    copy.findings.clear();  // another version of the tool may find something else in the same run
    copy.losses.clear();
    SummaryWriter writer;
    contents(writer, copy);
    return fmt::format("{:016x}",
                       contentHash(fmt::format("{:016x} {}", contentHash(writer.text()), summary.startUnixNs)));
}

}  // namespace rankscope::compare
