// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_details.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/facts/rank_summary.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

using store::Statement;
using store::TraceReader;

constexpr int64_t kLongestQueueNs = 10'000'000'000;  // a launch further from its kernel is not looked for
constexpr size_t kMaxLaunched = 8;                   // of the kernels of a graph
constexpr size_t kMaxCallsOfKernel = 8;              // of a group that shares a kernel

int64_t plus(int64_t a, int64_t b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

int64_t minus(int64_t a, int64_t b) {
    int64_t difference = 0;
    return __builtin_sub_overflow(a, b, &difference) ? (b > 0 ? INT64_MIN : INT64_MAX) : difference;
}

const Column* find(const std::vector<Column>& row, std::string_view name) {
    const auto found = std::find_if(row.begin(), row.end(), [&](const Column& column) { return column.name == name; });
    return found == row.end() || found->null ? nullptr : &*found;
}

int64_t integer(const std::vector<Column>& row, std::string_view name, int64_t fallback) {
    const Column* column = find(row, name);
    return column ? column->integer : fallback;
}

class DetailReader {
  public:
    DetailReader(TraceReader& reader, const RunInfo& run, const EventLink& event)
        : m_reader(reader), m_run(run), m_event(event), m_row(readRow(reader, event)) {}

    EventDetails read() {
        m_details.sql = selectOf(m_event);
        if (m_row.empty()) {
            m_details.title = fmt::format("row {} of table {} does not exist", m_event.rowId, tableName(m_event.table));
            return std::move(m_details);
        }
        m_startNs = integer(m_row, "start_ns", 0);
        m_durNs = integer(m_row, "dur_ns", 0);
        m_details.title = title();
        addPlace();
        addFindings();
        addCommunication();
        addLaunch();
        addLaunched();
        addRanges();
        addColumns();
        return std::move(m_details);
    }

  private:
    std::string title() const {
        switch (m_event.table) {
            case EventTable::step:
                return fmt::format("step {}", m_event.rowId);
            case EventTable::memset:
                return "memset";
            case EventTable::memcpy:
                return find(m_row, "kind") ? "copy " + columnText(m_run, "memcpy", *find(m_row, "kind"))
                                           : std::string("copy");
            case EventTable::ncclCall:
                return displayText(find(m_row, "op") ? find(m_row, "op")->text : std::string("NCCL call"));
            case EventTable::idleGap:
                return "idle: " + std::string(facts::inWords(find(m_row, "cause") ? find(m_row, "cause")->text : ""));
            default:
                return stringText(m_run, integer(m_row, "name_id", 0));
        }
    }

    DetailSection& section(std::string title) {
        return m_details.sections.emplace_back(DetailSection{std::move(title), {}});
    }

    void addPlace() {
        DetailSection& event = section("Event");
        const std::string where = m_event.table == EventTable::nvtxOnDevice ? " on the host" : "";
        event.rows.push_back({"duration" + where, find(m_row, "dur_ns") ? exactDuration(m_durNs) : "never closed", {}});
        event.rows.push_back({"start" + where, timeText(m_startNs), {}});
        event.rows.push_back({"rank", std::to_string(m_event.rank), {}});
        for (const char* place : {"stream_id", "thread_id"})
            if (const Column* column = find(m_row, place))
                event.rows.push_back({std::string(place, 6), columnText(m_run, tableName(m_event.table), *column), {}});
        if (const Column* bytes = find(m_row, "bytes"); bytes && m_event.table != EventTable::ncclCall && m_durNs > 0)
            event.rows.push_back(
                {"rate",
                 fmt::format("{:.4g} GB/s", static_cast<double>(bytes->integer) / static_cast<double>(m_durNs)),
                 {}});
        for (const StepInfo& step : m_run.steps) {
            if (step.rank != m_event.rank || !step.range.contains(m_startNs) || m_event.table == EventTable::step)
                continue;
            event.rows.push_back(
                {"in step",
                 fmt::format("{}, {} after its start", step.step, durationText(minus(m_startNs, step.range.beginNs))),
                 EventLink{EventTable::step, step.step, step.rank}});
        }
    }

    void addFindings() {
        Statement query(
            m_reader.database(),
            "SELECT f.diagnosis, f.title, e.note FROM finding_evidence e JOIN finding f ON f.id = e.finding_id WHERE "
            "e.table_name = ?1 AND e.row_id = ?2 AND (e.rank IS NULL OR e.rank = ?3) ORDER BY f.id LIMIT 8");
        query.bind(1, std::string_view(tableName(m_event.table))).bind(2, m_event.rowId).bind(3, int64_t{m_event.rank});
        std::vector<DetailRow> rows;
        while (query.step()) {
            const std::string label = displayText(query.text(0));
            std::string value = displayText(query.text(1));
            if (!query.isNull(2)) value += ": " + displayText(query.text(2));
            rows.push_back({label, std::move(value), {}});
        }
        if (!rows.empty()) section("Evidence of").rows = std::move(rows);
    }

    void addCommunication() {
        std::vector<int64_t> calls;
        if (m_event.table == EventTable::ncclCall) calls.push_back(m_event.rowId);
        if (m_event.table == EventTable::kernel && integer(m_row, "nccl", 0) != 0) calls = callsOfKernel();
        for (size_t i = 0; i < calls.size() && i < kMaxCallsOfKernel; ++i)
            for (DetailSection& part : readCommunication(m_reader, calls[i]))
                m_details.sections.push_back(std::move(part));
        if (calls.size() > kMaxCallsOfKernel)
            section("More NCCL calls")
                .rows.push_back({"calls of the group",
                                 fmt::format("{}, of which the first {} are shown", calls.size(), kMaxCallsOfKernel),
                                 {}});
        if (m_event.table == EventTable::kernel && integer(m_row, "nccl", 0) != 0 && calls.empty())
            section("NCCL call").rows.push_back({"call", "unknown: no recorded call names this kernel", {}});
    }

    std::vector<int64_t> callsOfKernel() {
        const store::IdRange ids = m_reader.extent<store::NcclCall>(m_event.rank);
        std::vector<int64_t> calls;
        Statement query(m_reader.database(),
                        "SELECT id FROM nccl_call WHERE id BETWEEN ?1 AND ?2 AND kernel_id = ?3 ORDER BY id");
        query.bind(1, ids.first).bind(2, ids.last).bind(3, m_event.rowId);
        while (query.step()) calls.push_back(query.integer(0));
        return calls;
    }

    // The call that launched the kernel, copy or set: of those with its correlation id the last one that began before
    // it.
    void addLaunch() {
        const Column* correlation = find(m_row, "correlation_id");
        const bool onDevice = m_event.table == EventTable::kernel || m_event.table == EventTable::memcpy ||
                              m_event.table == EventTable::memset;
        if (!correlation || !onDevice) return;
        store::ApiCall launch;
        bool found = false;
        for (int64_t back = 1'000'000; !found && back <= kLongestQueueNs; back *= 100) {
            auto calls = m_reader.cursor<store::ApiCall>(m_event.rank, plus(m_startNs, -back), plus(m_startNs, 1));
            for (store::ApiCall call; calls.next(call);) {
                if (!call.correlationId || int64_t{*call.correlationId} != correlation->integer) continue;
                launch = call;
                found = true;
            }
        }
        DetailSection& section_ = section("Launched by");
        if (!found) {
            section_.rows.push_back({"call", "not recorded in the " + durationText(kLongestQueueNs) + " before", {}});
            return;
        }
        section_.rows.push_back(
            {"call", stringText(m_run, launch.nameId), EventLink{EventTable::apiCall, launch.id, m_event.rank}});
        section_.rows.push_back({"on", threadName(launch.threadId), {}});
        section_.rows.push_back({"took", exactDuration(launch.durNs), {}});
        section_.rows.push_back({"launch to start", exactDuration(minus(m_startNs, launch.startNs)), {}});
        m_hostNs = launch.startNs;
        m_hostThread = launch.threadId;
    }

    std::string threadName(int64_t id) const { return columnText(m_run, "api_call", {"thread_id", false, id, {}}); }

    // What a launching call put on the GPU.
    void addLaunched() {
        const Column* correlation = find(m_row, "correlation_id");
        if (m_event.table != EventTable::apiCall || !correlation) return;
        std::vector<DetailRow> rows;
        switch (static_cast<store::ApiKind>(integer(m_row, "kind", 0))) {
            case store::ApiKind::launch:
            case store::ApiKind::graphLaunch:
                collectLaunched<store::Kernel>(
                    correlation->integer, EventTable::kernel,
                    [&](const store::Kernel& kernel) { return stringText(m_run, kernel.nameId); }, rows);
                break;
            case store::ApiKind::copy:
                collectLaunched<store::Memcpy>(
                    correlation->integer, EventTable::memcpy,
                    [](const store::Memcpy& copy) { return "copy of " + bytesText(copy.bytes); }, rows);
                break;
            case store::ApiKind::set:
                collectLaunched<store::Memset>(
                    correlation->integer, EventTable::memset,
                    [](const store::Memset& set) { return "set of " + bytesText(set.bytes); }, rows);
                break;
            default:
                return;
        }
        if (!rows.empty()) section("Launches").rows = std::move(rows);
    }

    template <typename Row, typename Name>
    void collectLaunched(int64_t correlation, EventTable table, Name&& name, std::vector<DetailRow>& rows) {
        for (int64_t ahead = 1'000'000; rows.empty() && ahead <= kLongestQueueNs; ahead *= 100) {
            auto events = m_reader.cursor<Row>(m_event.rank, m_startNs, plus(m_startNs, ahead));
            for (Row row; rows.size() < kMaxLaunched && events.next(row);) {
                if (!row.correlationId || int64_t{*row.correlationId} != correlation) continue;
                rows.push_back({fmt::format("{} later", durationText(minus(row.startNs, m_startNs))),
                                fmt::format("{}, {}", name(row), durationText(row.durNs)),
                                EventLink{table, row.id, m_event.rank}});
            }
        }
    }

    // NVTX ranges around the call on the host, the outermost first.
    void addRanges() {
        if (m_hostThread < 0) {
            const Column* thread = find(m_row, "thread_id");
            if (!thread) return;
            m_hostThread = thread->integer;
            m_hostNs = m_startNs;
        }
        std::vector<store::NvtxRange> around;
        auto ranges = m_reader.cursor<store::NvtxRange>(m_event.rank, m_hostNs, plus(m_hostNs, 1));
        for (store::NvtxRange range; ranges.next(range);) {
            const bool self =
                m_event.table == EventTable::nvtx && range.id == m_event.rowId;  // not of its like on the device
            if (!self && range.kind != store::NvtxKind::mark && range.threadId && *range.threadId == m_hostThread)
                around.push_back(range);
        }
        if (around.empty()) return;
        std::stable_sort(around.begin(), around.end(), [](const auto& a, const auto& b) { return a.depth < b.depth; });
        DetailSection& section_ = section("In NVTX ranges");
        for (const store::NvtxRange& range : around)
            section_.rows.push_back({fmt::format("depth {}", range.depth),
                                     fmt::format("{}, {}", stringText(m_run, range.nameId),
                                                 range.durNs ? durationText(*range.durNs) : "never closed"),
                                     EventLink{EventTable::nvtx, range.id, m_event.rank}});
    }

    void addColumns() {
        DetailSection& columns = section(fmt::format("Row of table {}", tableName(m_event.table)));
        for (const Column& column : m_row) {
            columns.rows.push_back({column.name, columnText(m_run, tableName(m_event.table), column), {}});
            if (column.name == "name_id") addMangledName(column.integer, columns);
        }
    }

    // What the file holds where a readable name is shown for it.
    void addMangledName(int64_t id, DetailSection& columns) {
        Statement query(m_reader.database(), "SELECT text FROM string WHERE id = ?1");
        query.bind(1, id);
        if (query.step() && query.text(0).starts_with("_Z"))
            columns.rows.push_back({"mangled name", displayText(query.text(0), 8192), {}});
    }

    TraceReader& m_reader;
    const RunInfo& m_run;
    EventLink m_event;
    std::vector<Column> m_row;
    int64_t m_startNs = 0, m_durNs = 0;
    int64_t m_hostNs = 0, m_hostThread = -1;  // where on the host it comes from
    EventDetails m_details;
};

}  // namespace

std::string selectOf(const EventLink& event) {
    const char* table = tableName(event.table);
    switch (event.table) {
        case EventTable::none:
            return {};
        case EventTable::step:
            return fmt::format("SELECT * FROM step WHERE rank = {} AND step = {};", event.rank, event.rowId);
        case EventTable::kernel:
        case EventTable::nvtx:
        case EventTable::nvtxOnDevice:
        case EventTable::apiCall:
            return fmt::format(
                "SELECT e.*, s.text AS name FROM {} e LEFT JOIN string s ON s.id = e.name_id WHERE e.id = {};", table,
                event.rowId);
        default:
            return fmt::format("SELECT * FROM {} WHERE id = {};", table, event.rowId);
    }
}

std::vector<Column> readRow(TraceReader& reader, const EventLink& event) {
    std::vector<Column> row;
    if (event.table == EventTable::none) return row;
    Statement names(reader.database(), "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
    names.bind(1, std::string_view(tableName(event.table)));
    while (names.step()) row.push_back({std::string(names.text(0)), false, 0, {}});
    const bool step = event.table == EventTable::step;
    Statement values(reader.database(), fmt::format("SELECT * FROM {} WHERE {}", tableName(event.table),
                                                    step ? "rank = ?1 AND step = ?2" : "id = ?1"));
    if (step)
        values.bind(1, int64_t{event.rank}).bind(2, event.rowId);
    else
        values.bind(1, event.rowId);
    if (!values.step()) return {};
    for (size_t i = 0; i < row.size(); ++i) {
        const auto column = static_cast<int>(i);
        row[i].null = values.isNull(column);
        row[i].integer = values.integer(column);
        row[i].text = values.text(column);
    }
    return row;
}

EventDetails readEventDetails(TraceReader& reader, const RunInfo& run, const EventLink& event) {
    return DetailReader(reader, run, event).read();
}

std::string detailsText(const EventDetails& details) {
    std::string text = details.title + "\n";
    for (const DetailSection& section : details.sections) {
        text += "\n" + section.title + "\n";
        for (const DetailRow& row : section.rows) text += fmt::format("  {:<18} {}\n", row.label, row.value);
    }
    return text;
}

}  // namespace rankscope::gui
