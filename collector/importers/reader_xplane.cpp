// SPDX-License-Identifier: Apache-2.0
// Recordings of XLA's profiler (HOST.xplane.pb of jax.profiler and TensorFlow): a plane for each device, a line for
// each of its streams, and lines of the host's threads. A rank is a device. Names of planes, lines and stats as in
// openxla/xla, xla/tsl/profiler/utils/xplane_schema.cc of 2025.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/importers/device_rank.h"
#include "collector/importers/import_error.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/readers.h"
#include "collector/importers/recording_rows.h"
#include "collector/importers/vendor_loss.h"
#include "collector/importers/xspace.h"

namespace rankscope::collector {

namespace {

constexpr std::string_view kGpuPlane = "/device:GPU:", kTpuPlane = "/device:TPU:", kHostPlane = "/host:CPU",
                           kPythonPlane = "/host:python-tracer", kStreamLine = "Stream #", kOperationsLine = "XLA Ops";
/// Calls of the driver, by CUPTI and by ROCm's tracer.
constexpr std::string_view kCallPlanes[] = {"/host:CUPTI", "/host:ROCTRACER"};
/// Ordinals of devices beyond are damage.
constexpr int64_t kMostOrdinal = 4096;
/// Unix times before 2001 are times since the recording began.
constexpr int64_t kLeastUnixNs = 978'307'200'000'000'000, kMostUnixNs = int64_t{1} << 61;

/// Ordinal of a plane of a device ("/device:GPU:3"); empty for others.
std::optional<int64_t> ordinalOf(std::string_view plane) {
    for (const std::string_view prefix : {kGpuPlane, kTpuPlane}) {
        if (!plane.starts_with(prefix)) continue;
        plane.remove_prefix(prefix.size());
        int64_t ordinal = 0;
        const auto [end, error] = std::from_chars(plane.data(), plane.data() + plane.size(), ordinal);
        if (error == std::errc() && end == plane.data() + plane.size() && ordinal >= 0 && ordinal < kMostOrdinal)
            return ordinal;
    }
    return std::nullopt;
}

/// What an HLO instruction does among devices: "all-reduce.3", "%all-gather-start.1 = …"; unknown for what computes,
/// and for permutations, which are no collective of ours.
store::Op opOfHlo(std::string_view name) {
    if (name.starts_with('%')) name.remove_prefix(1);
    constexpr std::pair<std::string_view, store::Op> kOps[] = {
        {"all-reduce", store::Op::allReduce},         {"all-gather", store::Op::allGather},
        {"reduce-scatter", store::Op::reduceScatter}, {"all-to-all", store::Op::allToAll},
        {"ragged-all-to-all", store::Op::allToAll},   {"collective-broadcast", store::Op::broadcast}};
    for (const auto& [prefix, op] : kOps) {
        if (!name.starts_with(prefix)) continue;
        std::string_view rest = name.substr(prefix.size());
        for (const std::string_view part : {"-start", "-done"})
            if (rest.starts_with(part)) rest.remove_prefix(part.size());
        if (rest.empty() || rest.front() == '.' || rest.front() == ' ') return op;
    }
    return store::Op::unknown;
}

/// The beginning of a collective that goes on beside what follows; its end is an instruction of its own.
bool isHloStart(std::string_view name) {
    return name.substr(0, name.find_first_of(". =")).ends_with("-start");
}

/// Value of a word in "grid:160,1,1 block:128,1,1 size:65536".
std::string_view wordIn(std::string_view details, std::string_view key) {
    for (size_t at = 0; at < details.size();) {
        const size_t end = std::min(details.find_first_of(" \n", at), details.size());
        const std::string_view word = details.substr(at, end - at);
        if (word.starts_with(key) && word.size() > key.size() && word[key.size()] == ':')
            return word.substr(key.size() + 1);
        at = end + 1;
    }
    return {};
}

std::optional<int64_t> wholeNumber(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Product of "160,1,1"; empty for what is none.
std::optional<uint32_t> productIn(std::string_view factors) {
    uint64_t all = factors.empty() ? UINT64_MAX : 1;
    for (size_t at = 0; at < factors.size();) {
        const size_t end = std::min(factors.find(',', at), factors.size());
        const auto factor = wholeNumber(factors.substr(at, end - at));
        if (!factor || *factor < 0 || *factor > UINT32_MAX) return std::nullopt;
        all = std::min<uint64_t>(all * static_cast<uint64_t>(*factor), UINT32_MAX);
        at = end + 1;
    }
    return all == UINT64_MAX ? std::nullopt : std::optional(static_cast<uint32_t>(all));
}

/// CUpti_ActivityMemoryKind by the name in details of a copy.
std::optional<int32_t> memoryOf(std::string_view kind) {
    if (kind == "pageable") return 1;
    if (kind == "pinned") return 2;
    if (kind == "device") return 3;
    return std::nullopt;
}

class XplaneFile {
  public:
    explicit XplaneFile(const std::filesystem::path& file) : m_file(file), m_space(file) {}

    void read(const ReadOptions& options, const std::function<void(FileRank)>& take) {
        findDevices();
        m_space.forEachEvent([this](const XPlane& plane, const XLine& line) { return isWanted(plane, line); },
                             [this](const XPlane& plane, const XLine& line, const XEvent& event) {
                                 if (const auto ordinal = ordinalOf(plane.name))
                                     addDevice(*ordinal, line, event);
                                 else if (isCallPlane(plane.name))
                                     addCall(line, event);
                                 else
                                     addHost(line, event);
                             });
        joinHost();
        handOver(options, take);
    }

  private:
    struct Device {
        std::unique_ptr<DeviceRank> rank;
        bool byStreams = false;  // else by the line of XLA's operations
        LocalDevice about;
    };
    struct Call {
        int64_t tid = 0;
        int64_t name = 0;
        store::ApiCall row;
    };
    struct Range {
        int64_t tid = 0;
        std::string text;
        bool isOperation = false;
        store::NvtxRange row;
    };

    static bool isCallPlane(std::string_view name) {
        return std::ranges::find(kCallPlanes, name) != std::end(kCallPlanes);
    }

    void findDevices() {
        for (const XPlane& plane : m_space.planes()) {
            if (plane.name == "Task Environment")
                for (const XStat& stat : plane.stats)
                    if (stat.name == "profile_start_time" && stat.number && *stat.number >= kLeastUnixNs &&
                        *stat.number <= kMostUnixNs)
                        m_baseNs = stat.number;
            const auto ordinal = ordinalOf(plane.name);
            const auto has = [&](std::string_view prefix) {
                return std::ranges::any_of(plane.lines,
                                           [&](const XLine& line) { return line.name.starts_with(prefix); });
            };
            if (!ordinal || (!has(kStreamLine) && !has(kOperationsLine))) continue;
            Device& device = m_devices[*ordinal];
            device.byStreams = has(kStreamLine);
            device.about.ordinal = static_cast<int32_t>(*ordinal);
            std::optional<int64_t> major, minor;
            for (const XStat& stat : plane.stats) {
                if (stat.name == "core_count") device.about.multiprocessors = stat.number;
                if (stat.name == "memory_size") device.about.memoryBytes = stat.number;
                if (stat.name == "device_type_string" || stat.name == "device_type") device.about.name = stat.text;
                if (stat.name == "compute_cap_major") major = stat.number;
                if (stat.name == "compute_cap_minor") minor = stat.number;
            }
            if (major && minor && *major > 0 && *major < 100 && *minor >= 0 && *minor < 10)
                device.about.computeCapability = *major * 10 + *minor;
            device.rank = std::make_unique<DeviceRank>(
                [this](int64_t name) { return std::string_view(m_names[static_cast<int32_t>(name)]); }, *ordinal);
        }
        if (m_devices.empty())
            throw ImportError(m_file, 0,
                              "the recording holds no device with streams or operations of XLA: it is of the "
                              "host alone",
                              "record while a device computes: jax.profiler.trace around some steps");
    }

    bool isWanted(const XPlane& plane, const XLine& line) const {
        if (const auto ordinal = ordinalOf(plane.name)) {
            const auto device = m_devices.find(*ordinal);
            if (device == m_devices.end()) return false;
            return device->second.byStreams ? line.name.starts_with(kStreamLine) : line.name == kOperationsLine;
        }
        return plane.name == kHostPlane || plane.name == kPythonPlane || isCallPlane(plane.name);
    }

    void addDevice(int64_t ordinal, const XLine& line, const XEvent& event) {
        Device& device = m_devices.at(ordinal);
        const DeviceRow row{event.startNs, event.durNs, event.number("context_id").value_or(0), line.id,
                            event.number("correlation_id")};
        const std::string_view copied = event.text("memcpy_details");
        std::string_view set = event.text("memset_details");
        if (set.empty()) set = event.text("Memset_details");
        if (!copied.empty() || event.name.starts_with("Memcpy")) {
            addCopy(*device.rank, row, event.name, copied);
        } else if (!set.empty() || event.name == "Memset") {
            device.rank->addSet(row, std::max<int64_t>(0, wholeNumber(wordIn(set, "size")).value_or(0)));
        } else if (!event.name.starts_with("MemoryResidency")) {
            addKernel(device, row, event);
        }
    }

    void addCopy(DeviceRank& rank, const DeviceRow& row, std::string_view name, std::string_view details) {
        store::Memcpy copy;
        copy.bytes = std::max<int64_t>(0, wholeNumber(wordIn(details, "size")).value_or(0));
        copy.srcMemory = memoryOf(wordIn(details, "kind_src"));
        copy.dstMemory = memoryOf(wordIn(details, "kind_dst"));
        constexpr std::pair<std::string_view, int32_t> kKinds[] = {
            {"MemcpyH2D", 1}, {"MemcpyD2H", 2}, {"MemcpyD2D", 8}, {"MemcpyP2P", 10}, {"MemcpyH2H", 9}};
        for (const auto& [kind, number] : kKinds)
            if (name == kind) copy.kind = number;
        rank.addCopy(row, copy);
    }

    void addKernel(const Device& device, const DeviceRow& row, const XEvent& event) {
        store::Kernel kernel;
        const std::string_view details = event.text("kernel_details");
        kernel.gridBlocks = productIn(wordIn(details, "grid"));
        kernel.blockThreads = productIn(wordIn(details, "block"));
        const std::string_view hlo = device.byStreams ? event.text("hlo_op") : event.name;
        store::Op op = opOfHlo(hlo);
        // On a TPU the core goes on behind the start; it waits, if at all, where the collective is to be done.
        if (!device.byStreams && isHloStart(hlo)) op = store::Op::unknown;
        const std::string_view shown = device.byStreams || event.displayName.empty() ? event.name : event.displayName;
        device.rank->addKernel(row, m_names.intern(shown), kernel, op);
    }

    void addCall(const XLine& line, const XEvent& event) {
        store::ApiCall call;
        call.startNs = event.startNs;
        call.durNs = event.durNs;
        call.correlationId = correlationOf(event.number("correlation_id"));
        m_calls.push_back({line.id, m_names.intern(event.name), call});
    }

    /// A step is a range with its number behind the name; what else the host did is kept where it tells why a device
    /// stood idle.
    void addHost(const XLine& line, const XEvent& event) {
        Range range{line.id, std::string(event.name), true, {}};
        range.row.startNs = event.startNs;
        range.row.durNs = event.durNs;
        range.row.kind = store::NvtxKind::pushPop;
        if (const auto step = event.number("step_num")) {
            range.text += " " + std::to_string(*step);
            range.isOperation = false;
        }
        m_threads.emplace(line.id, line.name);
        m_ranges.push_back(std::move(range));
    }

    /// Host work is of the process, which drives all devices of the file: a call is of the rank whose work it caused.
    void joinHost() {
        std::map<uint32_t, DeviceRank*> rankOf;
        for (const auto& [ordinal, device] : m_devices) {
            for (const store::Kernel& kernel : device.rank->recording().kernels)
                if (kernel.correlationId) rankOf.emplace(*kernel.correlationId, device.rank.get());
            for (const store::Memcpy& copy : device.rank->recording().memcpys)
                if (copy.correlationId) rankOf.emplace(*copy.correlationId, device.rank.get());
        }
        for (const Call& call : m_calls) {
            const auto own = call.row.correlationId ? rankOf.find(*call.row.correlationId) : rankOf.end();
            (own == rankOf.end() ? *m_devices.begin()->second.rank : *own->second)
                .addCall(call.tid, call.name, call.row);
        }
        for (const auto& [ordinal, device] : m_devices) {
            for (const Range& range : m_ranges) {
                if (range.isOperation)
                    device.rank->addOperation(range.tid, range.text, range.row.startNs, *range.row.durNs,
                                              range.text.starts_with('$'));
                else
                    device.rank->addRange(range.tid, range.text, {}, range.row);
            }
            for (const auto& [tid, name] : m_threads) device.rank->nameThread(tid, name);
        }
    }

    void handOver(const ReadOptions& options, const std::function<void(FileRank)>& take) {
        ImportLosses& losses = m_space.losses();
        if (m_calls.empty())
            losses.add("source_absent", "info", std::nullopt,
                       "no calls of the driver are in the recording: what launches and waits cost is not judged");
        losses.add("source_absent", "info", std::nullopt,
                   "XLA's profiler tells neither communicators nor sizes of collectives: communicators are inferred, "
                   "bandwidths are not judged");
        if (std::ranges::none_of(m_devices, [](const auto& device) { return device.second.byStreams; }))
            tellVendor("Google's (TPU)", losses);
        bool isFirst = true;
        for (auto& [ordinal, device] : m_devices) {
            FileRank read = device.rank->finish(m_devices.size() > 1, options);
            read.recording.devices.push_back(device.about);
            if (!m_space.hosts().empty()) read.recording.hostName = m_space.hosts().front();
            const auto first = earliestNs(read.recording);
            if (m_baseNs && first && *first < kLeastUnixNs) read.header.baseTimeNs = m_baseNs;
            if (isFirst)  // of the file, and told once
                for (const ImportLoss& loss : losses.all())
                    read.losses.add(loss.kind, loss.severity, loss.offset, loss.message, loss.count);
            isFirst = false;
            take(std::move(read));
        }
    }

    std::filesystem::path m_file;
    XSpace m_space;
    LocalStrings m_names;  // of kernels and calls
    std::map<int64_t, Device> m_devices;
    std::optional<int64_t> m_baseNs;
    std::vector<Call> m_calls;
    std::vector<Range> m_ranges;
    std::map<int64_t, std::string> m_threads;
};

}  // namespace

const Reader kXplaneReader{
    .name = "xplane",
    .expected = "a recording of XLA's profiler",
    .endings = {".xplane.pb", ".xplane.pb.gz"},
    .timeBase = "profile_start_time",
    .recognises =
        [](std::string_view head) {
            // Its first field is a plane, and planes have these names.
            return head.starts_with('\x0a') &&
                   (head.find("/host:") != std::string_view::npos || head.find("/device:") != std::string_view::npos ||
                    head.find("Task Environment") != std::string_view::npos);
        },
    .read = [](const std::filesystem::path& file, const ReadOptions& options,
               const std::function<void(FileRank)>& take) { XplaneFile(file).read(options, take); },
};

}  // namespace rankscope::collector
