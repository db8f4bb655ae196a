// SPDX-License-Identifier: Apache-2.0
// Recordings of XLA's profiler (HOST.xplane.pb of jax.profiler and TensorFlow): a plane for each device, a line for
// each of its streams, and lines of the host's threads. A rank is a device. Names of planes, lines and stats as in
// openxla/xla, xla/tsl/profiler/utils/xplane_schema.cc of 2025.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/importers/device_rank.h"
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "collector/importers/recording_rows.h"
#include "collector/importers/vendor_loss.h"
#include "collector/importers/xplane_words.h"
#include "collector/importers/xspace.h"

namespace rankscope::collector {

namespace {

constexpr std::string_view kHostPlane = "/host:CPU", kPythonPlane = "/host:python-tracer", kStreamLine = "Stream #",
                           kOperationsLine = "XLA Ops";
/// Calls of the driver, by CUPTI and by ROCm's tracer.
constexpr std::string_view kCallPlanes[] = {"/host:CUPTI", "/host:ROCTRACER"};
/// XLA's tracer stops at two million calls and as many device events; this is of eight devices.
constexpr size_t kMostXEvents = size_t{16} << 20;
/// Rows that the host's ranges may become, which each device of the file has.
constexpr size_t kMostHostRows = size_t{32} << 20;
/// A step's name is a word; the number is put behind it.
constexpr size_t kMostStepBytes = 256;
/// Unix times before 2001 are times since the recording began.
constexpr int64_t kLeastUnixNs = 978'307'200'000'000'000, kMostUnixNs = int64_t{1} << 61;

/// Stats that are read; kXplaneStats has their names in this order.
enum XplaneStat : size_t {
    kContext,
    kCorrelation,
    kCopyDetails,
    kSetDetails,
    kSetDetailsOfRocm,
    kKernelDetails,
    kHloOp,
    kStep,
    kStartTime,
    kCores,
    kMemory,
    kDeviceTypeText,
    kDeviceType,
    kMajor,
    kMinor
};
constexpr std::string_view kXplaneStats[] = {
    "context_id",  "correlation_id",    "memcpy_details",     "memset_details", "Memset_details", "kernel_details",
    "hlo_op",      "step_num",          "profile_start_time", "core_count",     "memory_size",    "device_type_string",
    "device_type", "compute_cap_major", "compute_cap_minor"};
static_assert(std::size(kXplaneStats) == kMinor + 1);

struct XplaneDevice {
    std::unique_ptr<DeviceRank> rank;
    bool byStreams = false;  // else by the line of XLA's operations
    LocalDevice about;
};

/// What is told of devices, in front of the events.
class XplaneDevices : public XSpaceVisitor {
  public:
    bool plane(std::string_view name, const XStats& stats) override {
        const auto number = [&stats](XplaneStat stat) { return stats[stat] ? stats[stat]->number : std::nullopt; };
        if (name == "Task Environment") {
            const auto startNs = number(kStartTime);
            if (startNs && *startNs >= kLeastUnixNs && *startNs <= kMostUnixNs) baseNs = startNs;
            return false;
        }
        const auto ordinal = ordinalOfPlane(name);
        if (ordinal == -1) ++impossible;
        if (!ordinal || *ordinal < 0) return false;
        m_about = {};
        m_about.ordinal = static_cast<int32_t>(*ordinal);
        m_about.multiprocessors = number(kCores);
        m_about.memoryBytes = number(kMemory);
        for (const XplaneStat stat : {kDeviceTypeText, kDeviceType})
            if (stats[stat] && m_about.name.empty()) m_about.name = stats[stat]->text;
        const auto major = number(kMajor), minor = number(kMinor);
        if (major && minor && *major > 0 && *major < 100 && *minor >= 0 && *minor < 10)
            m_about.computeCapability = *major * 10 + *minor;
        return true;
    }
    bool line(const XLine& line) override {
        const bool isStream = line.name.starts_with(kStreamLine);
        if (!isStream && line.name != kOperationsLine) return false;
        XplaneDevice& device = devices[m_about.ordinal];
        device.byStreams = device.byStreams || isStream;
        device.about = m_about;
        return false;
    }
    void event(const XEvent&) override {}

    std::map<int64_t, XplaneDevice> devices;
    std::optional<int64_t> baseNs;
    int64_t impossible = 0;  // planes of devices that no host has

  private:
    LocalDevice m_about;  // of the plane that is visited
};

class XplaneFile : private XSpaceVisitor {
  public:
    explicit XplaneFile(const std::filesystem::path& file)
        : m_file(file), m_space(file, {std::begin(kXplaneStats), std::end(kXplaneStats)}) {}

    void read(const ReadOptions& options, const std::function<void(FileRank)>& take) {
        findDevices();
        m_losses = m_space.losses();
        m_space.visit(*this, m_losses);
        joinHost();
        handOver(options, take);
    }

  private:
    /// What an event's name tells, found out once.
    struct Name {
        int32_t id = 0;
        int32_t shown = 0;  // of a kernel
        store::Op op = store::Op::unknown;
    };
    struct Call {
        int64_t tid = 0;
        int64_t name = 0;
        store::ApiCall row;
    };
    struct Range {
        int64_t tid = 0;
        int32_t name = 0;
        bool isOperation = false;
        std::optional<int64_t> step;
        store::NvtxRange row;
    };
    enum class Kind { device, calls, host };

    void findDevices() {
        XplaneDevices found;
        ImportLosses ignored;  // told when events are read
        m_space.visit(found, ignored);
        m_devices = std::move(found.devices);
        m_baseNs = found.baseNs;
        m_impossible = found.impossible;
        for (auto& [ordinal, device] : m_devices)
            device.rank = std::make_unique<DeviceRank>(
                [this](int64_t name) { return std::string_view(m_texts[static_cast<int32_t>(name)]); }, ordinal);
        if (m_devices.empty())
            throw ImportError(m_file, 0,
                              "the recording holds no device with streams or operations of XLA: it is of the "
                              "host alone",
                              "record while a device computes: jax.profiler.trace around some steps");
    }

    bool plane(std::string_view name, const XStats&) override {
        m_device = nullptr;
        if (const auto ordinal = ordinalOfPlane(name)) {
            const auto device = m_devices.find(*ordinal);
            m_device = device == m_devices.end() ? nullptr : &device->second;
            m_kind = Kind::device;
            return m_device != nullptr;
        }
        m_kind = std::ranges::find(kCallPlanes, name) != std::end(kCallPlanes) ? Kind::calls : Kind::host;
        return m_kind == Kind::calls || name == kHostPlane || name == kPythonPlane;
    }

    bool line(const XLine& line) override {
        m_line = line;
        m_isNamed = false;
        if (m_kind != Kind::device) return true;
        return m_device->byStreams ? line.name.starts_with(kStreamLine) : line.name == kOperationsLine;
    }

    void event(const XEvent& event) override {
        if (++m_events > kMostXEvents) {
            ++m_leftOut;
            return;
        }
        if (m_kind == Kind::device)
            addDevice(event);
        else if (m_kind == Kind::calls)
            addCall(event);
        else
            addHost(event);
    }

    const Name& nameOf(const XEvent& event) {
        const auto [known, isNew] = m_names.try_emplace(event.nameKey);
        if (isNew) {
            known->second.id = m_texts.intern(event.name);
            known->second.shown = event.displayName.empty() ? known->second.id : m_texts.intern(event.displayName);
            // On a TPU the core goes on behind the start; it waits, if at all, where the collective is to be done.
            if (!isHloStart(event.name)) known->second.op = opOfHlo(event.name);
        }
        return known->second;
    }

    void addDevice(const XEvent& event) {
        const DeviceRow row{event.startNs, event.durNs, event.number(kContext).value_or(0), m_line.id,
                            event.number(kCorrelation)};
        const std::string_view copied = event.text(kCopyDetails);
        std::string_view set = event.text(kSetDetails);
        if (set.empty()) set = event.text(kSetDetailsOfRocm);
        if (!copied.empty() || event.name.starts_with("Memcpy")) {
            addCopy(*m_device->rank, row, event.name, copied);
        } else if (!set.empty() || event.name == "Memset") {
            m_device->rank->addSet(row, std::max<int64_t>(0, wholeNumber(wordIn(set, "size")).value_or(0)));
        } else if (!event.name.starts_with("MemoryResidency")) {
            addKernel(row, event);
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

    void addKernel(const DeviceRow& row, const XEvent& event) {
        store::Kernel kernel;
        const std::string_view details = event.text(kKernelDetails);
        kernel.gridBlocks = productIn(wordIn(details, "grid"));
        kernel.blockThreads = productIn(wordIn(details, "block"));
        const Name& name = nameOf(event);
        if (m_device->byStreams)
            m_device->rank->addKernel(row, name.id, kernel, opOfHlo(event.text(kHloOp)));
        else
            m_device->rank->addKernel(row, name.shown, kernel, name.op);
    }

    void addCall(const XEvent& event) {
        store::ApiCall call;
        call.startNs = event.startNs;
        call.durNs = event.durNs;
        call.correlationId = correlationOf(event.number(kCorrelation));
        m_calls.push_back({m_line.id, nameOf(event).id, call});
    }

    /// A step is a range with its number behind the name; what else the host did is kept where it tells why a device
    /// stood idle.
    void addHost(const XEvent& event) {
        Range range{m_line.id, nameOf(event).id, true, event.number(kStep), {}};
        range.row.startNs = event.startNs;
        range.row.durNs = event.durNs;
        range.row.kind = store::NvtxKind::pushPop;
        range.isOperation = !range.step;
        if (!m_isNamed) m_threads.try_emplace(m_line.id, m_line.name);
        m_isNamed = true;
        m_ranges.push_back(range);
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
        size_t rows = 0, without = 0;
        for (const auto& [ordinal, device] : m_devices) {
            rows += m_ranges.size();
            if (rows > kMostHostRows && device.rank != m_devices.begin()->second.rank)
                ++without;
            else
                addRanges(*device.rank);
            for (const auto& [tid, name] : m_threads) device.rank->nameThread(tid, name);
        }
        if (without > 0)
            m_losses.add("bad_block", "warning", std::nullopt,
                         "devices are left without the host's ranges, which are too many for all", without);
    }

    void addRanges(DeviceRank& rank) const {
        for (const Range& range : m_ranges) {
            const std::string& name = m_texts[range.name];
            if (range.isOperation)
                rank.addOperation(range.tid, name, range.row.startNs, *range.row.durNs, name.starts_with('$'));
            else
                rank.addRange(range.tid, name.substr(0, kMostStepBytes) + " " + std::to_string(*range.step), {},
                              range.row);
        }
    }

    void handOver(const ReadOptions& options, const std::function<void(FileRank)>& take) {
        ImportLosses& losses = m_losses;
        if (m_leftOut > 0)
            losses.add("bad_block", "warning", std::nullopt,
                       "events are left out: the recording has more than " + std::to_string(kMostXEvents), m_leftOut);
        if (m_impossible > 0)
            losses.add("bad_block", "warning", std::nullopt, "planes of devices that no host has are left out",
                       m_impossible);
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
            read.recording.hostName = m_space.host();
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
    ImportLosses m_losses;
    LocalStrings m_texts;                        // of kernels, calls and ranges
    std::unordered_map<uint64_t, Name> m_names;  // by key of the event's name
    std::map<int64_t, XplaneDevice> m_devices;
    std::optional<int64_t> m_baseNs;
    std::vector<Call> m_calls;
    std::vector<Range> m_ranges;
    std::map<int64_t, std::string> m_threads;
    size_t m_events = 0;
    int64_t m_leftOut = 0, m_impossible = 0;
    // Of the plane and the line that are visited:
    Kind m_kind = Kind::host;
    XplaneDevice* m_device = nullptr;
    XLine m_line;
    bool m_isNamed = false;  // among m_threads
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
