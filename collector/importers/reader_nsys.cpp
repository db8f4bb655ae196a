// SPDX-License-Identifier: Apache-2.0
// SQLite exports of Nsight Systems (nsys export --type sqlite). A rank is what one process did on one device;
// most processes have one.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "collector/importers/device_rank.h"
#include "collector/importers/import_error.h"
#include "collector/importers/most_devices.h"
#include "collector/importers/nsys_database.h"
#include "collector/importers/nsys_machine.h"
#include "collector/importers/nsys_nccl.h"
#include "collector/importers/nsys_processes.h"
#include "collector/importers/readers.h"
#include "collector/importers/recording_rows.h"

namespace rankscope::collector {

namespace {

using Row = NsysDatabase::Row;

class NsysReport {
  public:
    NsysReport(const std::filesystem::path& file, const ReadOptions& options)
        : m_file(file), m_options(options), m_database(file) {}

    void read(const std::function<void(FileRank)>& take) {
        readKernels();
        readCopies();
        if (m_processes.empty())
            throw ImportError(m_file, 0, "the report holds no GPU work: " + tablesText(),
                              "record with nsys profile --trace=cuda,nvtx");
        m_processes.findUnnamed();
        m_processes.dropStrayDevices();
        readWaits();
        readCalls();
        if (m_options.allOperations) readSystemCalls();
        readRanges();
        readMetrics();
        nameThreads();
        tellWhatIsNotRead();
        handOver(take);
    }

  private:
    using Process = NsysProcesses::Process;

    void tellBadTimes(const char* table) {
        m_losses.add("bad_block", "warning", std::nullopt,
                     std::string("rows of ") + table +
                         " without a start, with an end before it, or with a time that cannot be, are left out");
    }

    /// Times of a row; none where it has no start, or an end before it, or one that cannot be.
    std::optional<std::pair<int64_t, int64_t>> timesOf(const Row& row, const char* table) {
        const std::optional<int64_t> start = row.integer(0), end = row.integer(1);
        // The difference of two times that can be is in range.
        if (!isNsysTime(start) || !isNsysTime(end) || *end < *start || *end - *start > kMostNsysNs) {
            tellBadTimes(table);
            return std::nullopt;
        }
        return std::pair(*start, *end - *start);
    }

    /// The first six columns of every table of device work.
    static constexpr const char *kStart = "start", *kEnd = "end", *kDevice = "deviceId", *kContext = "contextId",
                                *kStream = "streamId", *kCorrelation = "correlationId", *kProcess = "globalPid";

    /// Calls `visit` with the rank and what device rows have in common; columns behind the seventh are the table's own.
    template <typename Visit>
    void forEachDeviceRow(const char* table, std::initializer_list<const char*> columns, Visit visit) {
        m_database.forEach(table, columns, m_losses, [&](const Row& row) {
            const auto times = timesOf(row, table);
            if (!times) return;
            const int64_t device = row.integer(2).value_or(0);
            if (device < 0 || device >= kMostDevices) {
                m_losses.add("bad_block", "warning", std::nullopt,
                             std::string("rows of ") + table + " with a deviceId that no GPU has are left out");
                return;
            }
            const DeviceRow common{times->first, times->second, row.integer(3).value_or(0), row.integer(4).value_or(0),
                                   row.integer(5)};
            visit(row, common, m_processes.rankOf(row.integer(6), device));
        });
    }

    void readKernels() {
        forEachDeviceRow("CUPTI_ACTIVITY_KIND_KERNEL",
                         {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, "demangledName",
                          "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "graphNodeId"},
                         [](const Row& row, const DeviceRow& common, DeviceRank& rank) {
                             store::Kernel kernel;
                             kernel.gridBlocks = product(row, 9);
                             kernel.blockThreads = product(row, 12);
                             kernel.graphNode = row.integer(15);
                             const std::optional<int64_t> name = row.integer(7);
                             rank.addKernel(common, name ? *name : row.integer(8).value_or(-1), kernel);
                         });
        // With --cuda-graph-trace=graph, the default, what runs is the graph as a whole.
        forEachDeviceRow("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                         {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, "graphId"},
                         [&](const Row& row, const DeviceRow& common, DeviceRank& rank) {
                             rank.addNamedKernel(common, "CUDA graph " + std::to_string(row.integer(7).value_or(0)),
                                                 {});
                             m_losses.add("source_absent", "warning", std::nullopt,
                                          "CUDA graphs were recorded as a whole: their kernels, copies and "
                                          "collectives are unknown; record with --cuda-graph-trace=node");
                         });
    }

    /// Three factors; empty where one is missing, as large as can be where the product is larger.
    static std::optional<uint32_t> product(const Row& row, int column) {
        uint64_t all = 1;
        for (int i = column; i < column + 3; ++i) {
            const std::optional<int64_t> factor = row.integer(i);
            if (!factor || *factor < 0 || *factor > UINT32_MAX) return std::nullopt;
            all = std::min<uint64_t>(all * static_cast<uint64_t>(*factor), UINT32_MAX);
        }
        return static_cast<uint32_t>(all);
    }

    /// CUPTI's kind of a memory, which counts from 1, by that of an export (ENUM_CUDA_MEM_KIND), which counts from 0.
    static std::optional<int32_t> memoryKind(std::optional<int64_t> kind) {
        if (!kind || *kind < 0 || *kind > 6) return std::nullopt;
        return static_cast<int32_t>(*kind) + 1;
    }

    void readCopies() {
        forEachDeviceRow("CUPTI_ACTIVITY_KIND_MEMCPY",
                         {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, "bytes", "copyKind",
                          "srcKind", "dstKind"},
                         [](const Row& row, const DeviceRow& common, DeviceRank& rank) {
                             store::Memcpy copy;
                             copy.bytes = std::max<int64_t>(0, row.integer(7).value_or(0));
                             copy.kind = static_cast<int32_t>(std::clamp<int64_t>(row.integer(8).value_or(0), 0, 255));
                             copy.srcMemory = memoryKind(row.integer(9));
                             copy.dstMemory = memoryKind(row.integer(10));
                             rank.addCopy(common, copy);
                         });
        forEachDeviceRow("CUPTI_ACTIVITY_KIND_MEMSET",
                         {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, "bytes"},
                         [](const Row& row, const DeviceRow& common, DeviceRank& rank) {
                             rank.addSet(common, std::max<int64_t>(0, row.integer(7).value_or(0)));
                         });
    }

    void readWaits() {
        constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
        m_database.forEach(
            kTable, {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, "syncType", "eventId"}, m_losses,
            [&](const Row& row) {
                // Their device is not that of the stream in some versions: 0 for a wait of the process on device 1.
                const Process* process = m_processes.known(row.integer(6));
                if (process == nullptr || process->strayContexts.count(row.integer(3).value_or(0)) > 0) return;
                const std::optional<int64_t> device =
                    process->ranks.size() > 1 ? row.integer(2) : std::optional<int64_t>();
                DeviceRank* rank = m_processes.rankAt(row.integer(6), device);
                const auto times = timesOf(row, kTable);
                if (!times) return;
                store::Synchronization wait;
                wait.kind = static_cast<int32_t>(std::clamp<int64_t>(row.integer(7).value_or(0), 0, 255));
                const std::optional<int64_t> event = row.integer(8);
                if (event && *event != UINT32_MAX) wait.eventId = event;
                constexpr int32_t kContextSync = 4;  // CUpti_ActivitySynchronizationType
                const std::optional<int64_t> stream = row.integer(4);
                const bool onStream = wait.kind != kContextSync && stream && *stream != UINT32_MAX && *stream >= 0;
                rank->addWait(
                    {times->first, times->second, row.integer(3).value_or(0), stream.value_or(0), row.integer(5)},
                    onStream, wait);
            });
        constexpr const char* kEventTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
        m_database.forEach(kEventTable, {"timestamp", kDevice, kContext, kStream, kCorrelation, kProcess, "eventId"},
                           m_losses, [&](const Row& row) {
                               const Process* process = m_processes.known(row.integer(5));
                               if (process == nullptr || !row.integer(6) ||
                                   process->strayContexts.count(row.integer(2).value_or(0)) > 0)
                                   return;
                               if (!isNsysTime(row.integer(0))) return tellBadTimes(kEventTable);
                               DeviceRank* rank = m_processes.rankAt(row.integer(5), row.integer(1));
                               rank->addEvent({*row.integer(0), 0, row.integer(2).value_or(0),
                                               row.integer(3).value_or(0), row.integer(4)},
                                              *row.integer(6));
                           });
    }

    void readCalls() {
        constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
        m_processes.correlate();
        m_database.forEach(kTable, {kStart, kEnd, "globalTid", kCorrelation, "nameId"}, m_losses, [&](const Row& row) {
            const int64_t globalTid = row.integer(2).value_or(0);
            Process* process = m_processes.known(globalTid);
            if (process == nullptr) {
                ++m_ofNoProcess;
                return;
            }
            const auto times = timesOf(row, kTable);
            if (!times) return;
            store::ApiCall call;
            call.startNs = times->first;
            call.durNs = times->second;
            call.correlationId = correlationOf(row.integer(3));
            DeviceRank* rank = process->ranks.begin()->second.get();
            if (call.correlationId) {
                const auto own = process->rankOf.find(*call.correlationId);
                if (own != process->rankOf.end()) rank = own->second;
            }
            rank->addCall(threadIn(globalTid), row.integer(4).value_or(-1), call);
        });
    }

    void readRanges() {
        // ENUM_NSYS_EVENT_TYPE: NvtxPushPopRange and NvtxtPushPopRange, and so on.
        constexpr int64_t kMark = 34, kPushPop = 59, kStartEnd = 60, kMarkByText = 66, kPushPopByText = 70,
                          kStartEndByText = 71, kDomainCreate = 75;
        constexpr const char* kTable = "NVTX_EVENTS";
        const NsysPayloads payloads(m_database, m_losses);
        std::map<std::pair<int64_t, int64_t>, std::string> domains;  // by process and number
        ImportLosses twice;                                          // told when the ranges are read
        m_database.forEach(
            kTable, {"eventType", "globalTid", "domainId", "text", "textId"}, twice, [&](const Row& row) {
                if (row.integer(0) != kDomainCreate) return;
                domains[{processOf(row.integer(1).value_or(0)), row.integer(2).value_or(0)}] = textOf(row, 3, 4);
            });
        m_database.forEach(
            kTable,
            {kStart, kEnd, "eventType", "globalTid", "domainId", "text", "textId", "color", "category", "binaryData"},
            m_losses, [&](const Row& row) {
                const std::optional<int64_t> start = row.integer(0), type = row.integer(2);
                Process* process = m_processes.known(row.integer(3).value_or(0));
                if (!start || !type || *type == kDomainCreate) return;
                if (process == nullptr) {
                    ++m_ofNoProcess;
                    return;
                }
                if (!isNsysTime(start)) return tellBadTimes(kTable);
                store::NvtxRange range;
                if (*type == kMark || *type == kMarkByText)
                    range.kind = store::NvtxKind::mark;
                else if (*type == kPushPop || *type == kPushPopByText)
                    range.kind = store::NvtxKind::pushPop;
                else if (*type == kStartEnd || *type == kStartEndByText)
                    range.kind = store::NvtxKind::startEnd;
                else
                    return;
                range.startNs = *start;
                const std::optional<int64_t> end = row.integer(1);  // none of a mark, and of a range that did not end
                if (isNsysTime(end) && *end >= *start && *end - *start <= kMostNsysNs) range.durNs = *end - *start;
                range.color = row.integer(7);
                range.category = row.integer(8);
                const int64_t tid = threadIn(*row.integer(3));
                const int64_t domainId = row.integer(4).value_or(0);
                const auto domain = domains.find({processOf(*row.integer(3)), domainId});
                const std::string text = textOf(row, 5, 6);
                const bool isNccl =
                    domain != domains.end() ? domain->second == "NCCL" : domainId != 0 && text.starts_with("nccl");
                if (isNccl) {
                    const auto told = parseNcclRange(text);
                    if (!told) return;
                    const NcclRange own{told->first,
                                        told->second,
                                        0,
                                        *start,
                                        *start + range.durNs.value_or(0),
                                        payloads.read(row.text(9))};
                    for (auto& [device, rank] : process->ranks) rank->addNccl(tid, own);
                    return;
                }
                for (auto& [device, rank] : process->ranks)
                    rank->addRange(tid, text, domain == domains.end() ? std::string_view() : domain->second, range);
            });
    }

    /// Calls of the operating system on the threads that call CUDA; what others wait for tells nothing of the device.
    void readSystemCalls() {
        constexpr const char* kTable = "OSRT_API";
        m_database.forEach(kTable, {kStart, kEnd, "globalTid", "nameId"}, m_losses, [&](const Row& row) {
            const int64_t globalTid = row.integer(2).value_or(0), tid = threadIn(globalTid);
            Process* process = m_processes.known(globalTid);
            if (process == nullptr) return;
            const auto times = timesOf(row, kTable);
            if (!times) return;
            store::NvtxRange range;
            range.kind = store::NvtxKind::pushPop;
            range.startNs = times->first;
            range.durNs = times->second;
            const std::string name(m_database.string(row.integer(3).value_or(-1)));
            for (auto& [device, rank] : process->ranks)
                if (rank->hasThread(tid)) rank->addRange(tid, name, "OS runtime", range);
        });
    }

    /// Samples of what devices have. GPUs are told by the number that the report gives them (the low byte of a
    /// metric's type; nsys export, schema of GPU_METRICS), ranks by the number that CUDA gave their process.
    void readMetrics() {
        constexpr const char* kTable = "GPU_METRICS";
        if (!m_database.has(kTable)) return;
        std::map<std::pair<int64_t, int64_t>, std::string> names;  // by type and metric
        m_database.forEach(
            "TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, m_losses, [&](const Row& row) {
                names.emplace(std::pair(row.integer(0).value_or(0), row.integer(1).value_or(0)), row.text(2));
            });
        const auto gpuOf = nsysGpus(m_database, m_losses);
        std::map<int64_t, DeviceRank*> rankOf;  // by GPU
        for (auto& [globalPid, process] : m_processes.all())
            for (auto& [device, rank] : process.ranks) {
                const auto gpu = gpuOf.find({pidOf(globalPid), device});
                rankOf.emplace(gpu == gpuOf.end() ? device : gpu->second, rank.get());
            }
        int64_t ofNone = 0;
        m_database.forEach(kTable, {"timestamp", "typeId", "metricId", "value"}, m_losses, [&](const Row& row) {
            const int64_t type = row.integer(1).value_or(0);
            const auto name = names.find({type, row.integer(2).value_or(0)});
            const auto rank = rankOf.find(type & 0xff);
            if (name == names.end() || rank == rankOf.end() || !row.integer(3)) {
                ++ofNone;
                return;
            }
            if (!isNsysTime(row.integer(0))) return tellBadTimes(kTable);
            rank->second->addCounter(*row.integer(0), name->second, *row.integer(3));
        });
        if (ofNone > 0)
            m_losses.add("source_absent", "info", std::nullopt,
                         "samples of GPU_METRICS are left out: of GPUs that no rank computes on, of metrics without a "
                         "name, or with a value that is no whole number",
                         ofNone);
    }

    /// The text of a row: as it is, or by its id.
    std::string textOf(const Row& row, int text, int id) {
        const std::string_view plain = row.text(text);
        if (!plain.empty()) return std::string(plain);
        const std::optional<int64_t> registered = row.integer(id);
        return registered ? std::string(m_database.string(*registered)) : std::string();
    }

    void nameThreads() {
        m_database.forEach("ThreadNames", {"nameId", "globalTid"}, m_losses, [&](const Row& row) {
            Process* process = m_processes.known(row.integer(1).value_or(0));
            if (process == nullptr || !row.integer(0)) return;
            const std::string name(m_database.string(*row.integer(0)));
            for (auto& [device, rank] : process->ranks) rank->nameThread(threadIn(*row.integer(1)), name);
        });
        m_database.forEach("PROCESSES", {"globalPid", "name"}, m_losses, [&](const Row& row) {
            if (Process* process = m_processes.known(row.integer(0).value_or(0))) process->name = row.text(1);
        });
    }

    void tellWhatIsNotRead() {
        static constexpr std::array kNotRead{"NET_NIC_METRIC",
                                             "NIC_ID_MAP",
                                             "CUDNN_EVENTS",
                                             "CUBLAS_EVENTS",
                                             "MPI_COLLECTIVES_EVENTS",
                                             "MPI_P2P_EVENTS",
                                             "COMPOSITE_EVENTS",
                                             "SCHED_EVENTS",
                                             "CUDA_GPU_MEMORY_USAGE_EVENTS"};
        std::string tables;
        for (const char* table : kNotRead)
            if (m_database.has(table)) tables += (tables.empty() ? "" : ", ") + std::string(table);
        if (!m_options.allOperations && m_database.has("OSRT_API"))
            tables += std::string(tables.empty() ? "" : ", ") + "OSRT_API (kept with --all-operations)";
        const bool unnamed = m_processes.hasUnnamed();
        if (m_ofNoProcess > 0)
            m_losses.add("source_absent", unnamed ? "warning" : "info", std::nullopt,
                         unnamed
                             ? "CUDA calls and NVTX ranges are left out: the GPU's work has no globalPid that would "
                               "tell which process it is of"
                             : "CUDA calls and NVTX ranges of no process with GPU work are left out",
                         m_ofNoProcess);
        if (m_database.largeStrings() > 0)
            m_losses.add("bad_block", "warning", std::nullopt,
                         "texts of StringIds that are too large are left out; rows stay without them",
                         m_database.largeStrings());
        if (!tables.empty())
            m_losses.add("source_absent", "info", std::nullopt, "tables of the report that are not read: " + tables);
    }

    std::string tablesText() {
        for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"})
            if (m_database.has(table)) return std::string(table) + " has no row that can be read";
        return "it has no table of kernels or copies";
    }

    void handOver(const std::function<void(FileRank)>& take) {
        // By device: so are the ranks of a host numbered where the report does not tell them.
        std::map<std::pair<int64_t, int64_t>, std::pair<const Process*, DeviceRank*>> ranks;
        for (auto& [globalPid, process] : m_processes.all())
            for (auto& [device, rank] : process.ranks) ranks[{device, globalPid}] = {&process, rank.get()};
        const auto known = nsysDevices(m_database, m_losses);
        const std::optional<int64_t> base = nsysBaseNs(m_database, m_losses);
        const std::string host = m_database.captured("DEVICE_DISPLAY_NAME");
        bool isFirst = true;
        for (auto& [key, of] : ranks) {
            const auto& [device, globalPid] = key;
            const auto& [process, rank] = of;
            FileRank read = rank->finish(process->ranks.size() > 1, m_options);
            RankRecording& recording = read.recording;
            recording.hostName = host;
            recording.process.pid = pidOf(globalPid);
            if (!process->name.empty()) recording.process.executable = process->name;
            auto about = known.find({pidOf(globalPid), device});
            if (about == known.end()) about = known.find({-1, device});
            if (about != known.end()) {
                recording.devices.push_back(about->second);
                recording.devices.back().ordinal = static_cast<int32_t>(device);
            }
            read.header.baseTimeNs = base;
            if (isFirst)  // of the file, and told once
                for (const ImportLoss& loss : m_losses.all())
                    read.losses.add(loss.kind, loss.severity, loss.offset, loss.message, loss.count);
            isFirst = false;
            take(std::move(read));
        }
    }

    std::filesystem::path m_file;
    ReadOptions m_options;
    NsysDatabase m_database;
    ImportLosses m_losses;
    NsysProcesses m_processes{m_database, m_losses};
    int64_t m_ofNoProcess = 0;  // CUDA calls and ranges
};

}  // namespace

const Reader kNsysReader{
    .name = "nsys",
    .expected = "an SQLite export of Nsight Systems",
    .endings = {".sqlite"},
    .timeBase = "utcEpochNs",
    .recognises = [](std::string_view head) { return head.starts_with(std::string_view("SQLite format 3\0", 16)); },
    .read = [](const std::filesystem::path& file, const ReadOptions& options,
               const std::function<void(FileRank)>& take) { NsysReport(file, options).read(take); },
};

}  // namespace rankscope::collector
