// SPDX-License-Identifier: Apache-2.0
// Databases of rocprofv3 (rocpd, its format since ROCm 7; rocprofiler-sdk, share/rocprofiler-sdk-rocpd). Each process
// has tables of its own, told apart by an ending; the schema that is called 3 keeps times and places in its rows, a
// later one in tables of their own (rocpd_timestamp, rocpd_track).
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "collector/importers/rocprof_run.h"
#include "collector/importers/sqlite_source.h"

namespace rankscope::collector {

namespace {

using Row = SqliteSource::Row;

/// Text of a member of a small JSON document; empty where there is none.
std::string jsonText(std::string_view document, const char* member) {
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    std::string_view text;
    if (document.size() < 3 || parser.parse(document.data(), document.size()).get(root) != simdjson::SUCCESS ||
        root[member].get(text) != simdjson::SUCCESS)
        return {};
    return std::string(text);
}

/// Bytes of an element of NCCL's type, by its name or number (ncclDataType_t); 0 for another.
int32_t ncclElementBytes(std::string_view type) {
    constexpr std::pair<std::string_view, int32_t> kSizes[] = {
        {"ncclInt8", 1},   {"ncclUint8", 1},   {"ncclInt32", 4},   {"ncclUint32", 4},  {"ncclInt64", 8},
        {"ncclUint64", 8}, {"ncclFloat16", 2}, {"ncclFloat32", 4}, {"ncclFloat64", 8}, {"ncclBfloat16", 2}};
    for (size_t i = 0; i < std::size(kSizes); ++i)
        if (type == kSizes[i].first || type == std::to_string(i)) return kSizes[i].second;
    return 0;
}

/// The tables of one ending.
class RocpdPart {
  public:
    RocpdPart(SqliteSource& database, std::string ending, RocprofRun& run, int64_t firstProcess)
        : m_database(database), m_ending(std::move(ending)), m_run(run), m_firstProcess(firstProcess) {}

    /// Returns how many processes it has.
    int64_t read() {
        readTexts();
        readProcesses();
        readAgents();
        readPlaces();
        readEvents();
        readKernels();
        readCopies();
        readRegions();
        readSamples();
        return static_cast<int64_t>(m_processes.size());
    }

  private:
    template <typename Visit>
    void forEach(const char* table, std::initializer_list<const char*> columns, Visit visit) {
        m_database.forEach(table + m_ending, columns, m_run.losses(), visit);
    }

    void readTexts() {
        forEach("rocpd_string", {"id", "string"},
                [this](const Row& row) { m_texts.emplace(row.integer(0).value_or(-1), row.text(1)); });
        forEach("rocpd_info_kernel_symbol", {"id", "display_name", "kernel_name"}, [this](const Row& row) {
            const std::string_view shown = row.text(1);
            m_kernels.emplace(row.integer(0).value_or(-1), shown.empty() ? row.text(2) : shown);
        });
    }

    std::string_view textOf(std::optional<int64_t> id) const {
        const auto text = m_texts.find(id.value_or(-1));
        return text == m_texts.end() ? std::string_view() : text->second;
    }

    void readProcesses() {
        std::map<int64_t, std::string> hosts;
        forEach("rocpd_info_node", {"id", "hostname", "name"}, [&](const Row& row) {
            hosts.emplace(row.integer(0).value_or(-1), row.text(1).empty() ? row.text(2) : row.text(1));
        });
        forEach("rocpd_info_process", {"id", "nid", "pid", "environment"}, [&](const Row& row) {
            const auto [place, isNew] = m_processes.try_emplace(row.integer(0).value_or(-1), nullptr);
            if (!isNew) return;
            RocprofRun::Process& process = m_run.process(m_firstProcess + static_cast<int64_t>(m_processes.size()) - 1);
            place->second = &process;
            process.pid = row.integer(2).value_or(0);
            process.host = hosts[row.integer(1).value_or(-1)];
            readEnvironment(row.text(3), process);
        });
        forEach("rocpd_info_thread", {"id", "tid"},
                [this](const Row& row) { m_threads.emplace(row.integer(0).value_or(-1), row.integer(1).value_or(0)); });
    }

    /// Launchers tell a process its rank by variables, each by its own.
    static void readEnvironment(std::string_view text, RocprofRun::Process& process) {
        simdjson::dom::parser parser;
        simdjson::dom::element environment;
        // Without a byte the column has no address either, from which nothing may be copied.
        if (text.empty() || parser.parse(text.data(), text.size()).get(environment) != simdjson::SUCCESS) return;
        const auto number = [&environment](std::initializer_list<const char*> names) -> std::optional<int64_t> {
            for (const char* name : names) {
                std::string_view told;
                int64_t value = 0;
                if (environment[name].get(told) == simdjson::SUCCESS &&
                    std::from_chars(told.data(), told.data() + told.size(), value).ptr == told.data() + told.size() &&
                    !told.empty() && value >= 0 && value < kMostRanks)
                    return value;
            }
            return std::nullopt;
        };
        const auto ranks = number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
        const auto rank = number({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
        if (!rank || (ranks && *rank >= *ranks)) return;
        process.rank = rank;
        process.worldSize = ranks;
        process.localRank = number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
    }

    void readAgents() {
        forEach("rocpd_info_agent", {"id", "pid", "type", "type_index", "product_name", "name"},
                [this](const Row& row) {
                    RocprofRun::Process* process = processOf(row.integer(1));
                    if (process == nullptr) return;
                    RocprofAgent agent;
                    agent.isGpu = row.text(2) == "GPU";
                    agent.ordinal = std::clamp<int64_t>(row.integer(3).value_or(0), 0, 255);
                    agent.name = row.text(4).empty() ? row.text(5) : row.text(4);
                    process->agents[row.integer(0).value_or(-1)] = std::move(agent);
                });
    }

    /// Null for a process that the file does not name.
    RocprofRun::Process* processOf(std::optional<int64_t> id) {
        const auto known = m_processes.find(id.value_or(-1));
        if (known != m_processes.end()) return known->second;
        m_run.losses().add("bad_block", "warning", std::nullopt,
                           "rows are left out whose process the database does not name");
        return nullptr;
    }

    void readPlaces() {
        forEach("rocpd_track", {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"}, [this](const Row& row) {
            m_tracks[row.integer(0).value_or(-1)] = {row.integer(1), row.integer(2), row.integer(3), row.integer(4),
                                                     row.integer(5)};
        });
        forEach("rocpd_timestamp", {"id", "value"}, [this](const Row& row) {
            if (row.integer(0) && row.integer(1)) m_times[*row.integer(0)] = *row.integer(1);
        });
    }

    void readEvents() {
        forEach("rocpd_event", {"id", "stack_id", "category_id", "extdata"}, [this](const Row& row) {
            Event event{row.integer(1), row.integer(2), {}};
            if (const auto category = textOf(event.category); category.starts_with("MARKER"))
                event.message = jsonText(row.text(3), "message");
            m_events.emplace(row.integer(0).value_or(-1), std::move(event));
        });
    }

    struct Place {
        std::optional<int64_t> process, thread, agent, queue, stream;
    };
    struct Event {
        std::optional<int64_t> correlation, category;
        std::string message;  // of ROCTx
    };

    const Event& eventOf(std::optional<int64_t> id) const {
        static const Event kNone;
        const auto event = m_events.find(id.value_or(-1));
        return event == m_events.end() ? kNone : event->second;
    }

    /// The place of a row by its own columns, from `at` on, or by its track.
    Place placeOf(const Row& row, int track, int at) const {
        const auto known = m_tracks.find(row.integer(track).value_or(-1));
        if (known != m_tracks.end()) return known->second;
        return {row.integer(at), row.integer(at + 1), row.integer(at + 2), row.integer(at + 3), row.integer(at + 4)};
    }

    std::optional<int64_t> timeOf(std::optional<int64_t> own, std::optional<int64_t> id) const {
        if (own || !id) return own;
        const auto time = m_times.find(*id);
        return time == m_times.end() ? std::nullopt : std::optional(time->second);
    }

    int64_t threadOf(const Place& place) const {
        const auto thread = m_threads.find(place.thread.value_or(-1));
        return thread == m_threads.end() ? place.thread.value_or(0) : thread->second;
    }

    /// The first columns of every table of work: times, event, track, and what stands in a track elsewhere.
    RocprofTimes timesOf(const Row& row) const {
        return {timeOf(row.integer(0), row.integer(2)), timeOf(row.integer(1), row.integer(3)),
                eventOf(row.integer(4)).correlation};
    }

    void readKernels() {
        forEach("rocpd_kernel_dispatch",
                {"start", "end", "start_id", "end_id", "event_id", "track_id", "pid", "tid", "agent_id", "queue_id",
                 "stream_id", "kernel_id", "grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x",
                 "workgroup_size_y", "workgroup_size_z"},
                [this](const Row& row) {
                    const Place place = placeOf(row, 5, 6);
                    RocprofRun::Process* process = processOf(place.process);
                    if (process == nullptr) return;
                    const auto name = m_kernels.find(row.integer(11).value_or(-1));
                    RocprofDispatch dispatch;
                    for (int i = 0; i < 3; ++i) {
                        dispatch.grid[static_cast<size_t>(i)] = row.integer(12 + i);
                        dispatch.workgroup[static_cast<size_t>(i)] = row.integer(15 + i);
                    }
                    m_run.addKernel(*process, place.agent.value_or(-1),
                                    place.stream ? *place.stream : place.queue.value_or(0), timesOf(row),
                                    name == m_kernels.end() ? "kernel " + std::to_string(row.integer(11).value_or(0))
                                                            : name->second,
                                    dispatch);
                });
    }

    void readCopies() {
        forEach("rocpd_memory_copy",
                {"start", "end", "start_id", "end_id", "event_id", "track_id", "pid", "tid", "agent_id", "queue_id",
                 "stream_id", "src_agent_id", "dst_agent_id", "size"},
                [this](const Row& row) {
                    const Place place = placeOf(row, 5, 6);
                    RocprofRun::Process* process = processOf(place.process);
                    if (process == nullptr) return;
                    m_run.addCopy(*process, row.integer(11).value_or(-1), row.integer(12).value_or(-1),
                                  place.stream.value_or(0), timesOf(row), row.integer(13).value_or(0));
                });
    }

    /// Bytes that calls of RCCL pass, by event.
    std::unordered_map<int64_t, int64_t> readArguments() {
        std::unordered_map<int64_t, int64_t> elements;
        std::unordered_map<int64_t, int32_t> sizes;
        std::unordered_set<int64_t> wanted;
        for (const auto& [id, event] : m_events)
            if (textOf(event.category).starts_with("RCCL")) wanted.insert(id);
        if (wanted.empty()) return {};
        forEach("rocpd_arg", {"event_id", "name", "value"}, [&](const Row& row) {
            const int64_t event = row.integer(0).value_or(-1);
            if (!wanted.contains(event)) return;
            const std::string value(row.text(2));
            if (row.text(1) == "datatype") sizes[event] = ncclElementBytes(value);
            if (row.text(1) != "count" && row.text(1) != "sendcount" && row.text(1) != "recvcount") return;
            int64_t count = 0;
            if (std::from_chars(value.data(), value.data() + value.size(), count).ec == std::errc())
                elements[event] = count;
        });
        std::unordered_map<int64_t, int64_t> bytes;
        for (const auto& [event, count] : elements) {
            int64_t product = 0;
            const auto size = sizes.find(event);
            if (size != sizes.end() && size->second > 0 && count >= 0 &&
                !__builtin_mul_overflow(count, int64_t{size->second}, &product))
                bytes.emplace(event, product);
        }
        return bytes;
    }

    void readRegions() {
        const auto bytes = readArguments();
        forEach("rocpd_region",
                {"start", "end", "start_id", "end_id", "event_id", "track_id", "pid", "tid", "agent_id", "queue_id",
                 "stream_id", "name_id"},
                [&](const Row& row) {
                    const auto size = bytes.find(row.integer(4).value_or(-1));
                    addHost(placeOf(row, 5, 6), timesOf(row), eventOf(row.integer(4)), textOf(row.integer(11)),
                            size == bytes.end() ? std::nullopt : std::optional(size->second));
                });
    }

    /// What begins and ends at the same time: marks.
    void readSamples() {
        forEach("rocpd_sample",
                {"timestamp", "timestamp", "timestamp_id", "timestamp_id", "event_id", "track_id", "pid", "tid",
                 "agent_id", "queue_id", "stream_id", "name_id"},
                [this](const Row& row) {
                    const Event& event = eventOf(row.integer(4));
                    if (textOf(event.category).starts_with("MARKER"))
                        addHost(placeOf(row, 5, 6), timesOf(row), event, "roctxMarkA", std::nullopt);
                });
    }

    void addHost(const Place& place, const RocprofTimes& times, const Event& event, std::string_view name,
                 std::optional<int64_t> bytes) {
        RocprofRun::Process* process = processOf(place.process);
        if (process == nullptr) return;
        const std::string_view category = textOf(event.category);
        if (category.starts_with("MARKER"))
            m_run.addMarker(*process, category, threadOf(place), times, name,
                            event.message.empty() ? name : std::string_view(event.message));
        else
            m_run.addCall(*process, category, threadOf(place), times, name, bytes);
    }

    SqliteSource& m_database;
    std::string m_ending;
    RocprofRun& m_run;
    int64_t m_firstProcess;
    std::unordered_map<int64_t, std::string> m_texts, m_kernels;
    std::map<int64_t, RocprofRun::Process*> m_processes;
    std::map<int64_t, int64_t> m_threads;  // tid by id
    std::unordered_map<int64_t, Place> m_tracks;
    std::unordered_map<int64_t, int64_t> m_times;
    std::unordered_map<int64_t, Event> m_events;
};

void readRocpd(const std::filesystem::path& file, const ReadOptions& options,
               const std::function<void(FileRank)>& take) {
    SqliteSource database(file, "record again with rocprofv3, or write JSON: rocprofv3 --output-format json");
    RocprofRun run(file);
    std::set<std::string> endings;
    constexpr std::string_view kStrings = "rocpd_string";
    for (const std::string& table : database.tables())
        if (table.starts_with(kStrings)) endings.insert(table.substr(kStrings.size()));
    if (endings.empty())
        throw ImportError(file, 0, "this is no database of rocprofv3: it has no table rocpd_string",
                          "record with rocprofv3 --output-format rocpd");
    int64_t processes = 0;
    for (const std::string& ending : endings) processes += RocpdPart(database, ending, run, processes).read();
    std::set<std::string> notRead;
    for (const std::string& table : database.tables())
        for (const char* unread : {"rocpd_memory_allocate", "rocpd_pmc_event"})
            if (table.starts_with(unread) && database.hasRows(table)) notRead.insert(unread);
    for (const std::string& table : notRead)
        run.losses().add("source_absent", "info", std::nullopt, "a table of the database that is not read: " + table);
    run.handOver(options, take);
}

}  // namespace

const Reader kRocpdReader{
    .name = "rocpd",
    .expected = "a database of rocprofv3",
    .endings = {".db"},
    .recognises = [](std::string_view head) { return head.starts_with(std::string_view("SQLite format 3\0", 16)); },
    .holds =
        [](const std::filesystem::path& file) {
            try {
                const std::vector<std::string> tables = SqliteSource(file, "").tables();
                return std::ranges::any_of(tables,
                                           [](const std::string& table) { return table.starts_with("rocpd_string"); });
            } catch (const ImportError&) {
                return false;  // the next reader tells why
            }
        },
    .read = readRocpd,
};

}  // namespace rankscope::collector
