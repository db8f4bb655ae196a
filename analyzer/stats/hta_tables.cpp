// SPDX-License-Identifier: Apache-2.0
#include "analyzer/stats/hta_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "collector/store/sqlite.h"

namespace rankscope::stats {
namespace {

enum class Kind { communication, memory, computation, other };

const char* toText(Kind kind) {
    constexpr const char* kTexts[] = {"COMMUNICATION", "MEMORY", "COMPUTATION", "OTHER"};
    return kTexts[static_cast<size_t>(kind)];
}

bool holds(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

/// hta/utils/utils.py, get_kernel_type().
Kind kindOf(const std::string& name) {
    if (name.starts_with("nccl") && holds(name, "Kernel")) return Kind::communication;
    if (name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("dma")) return Kind::memory;
    return holds(name, "Memcpy") || holds(name, "Sync") ? Kind::other : Kind::computation;
}

/// Something on a stream.
struct DeviceEvent {
    int64_t startUs = 0, endUs = 0;
    int64_t stream = 0;  // as the profiler numbers it
    Kind kind = Kind::other;
    bool isWait = false;  // no work: HTA's cuda_sync
    std::string name;
    std::optional<int64_t> launchUs;
    std::optional<int64_t> correlation;

    int64_t durUs() const { return endUs - startUs; }
};

struct Launch {
    int64_t startNs = 0;
    std::string call;
};

/// One rank as HTA sees it.
struct RankEvents {
    int64_t rank = 0;
    std::vector<DeviceEvent> device;
    std::unordered_map<int64_t, std::vector<Launch>> launches;  // by correlation
};

class HtaTrace {
  public:
    explicit HtaTrace(store::TraceReader& trace)
        : m_database(trace.database()),
          m_originNs(trace.metaInteger("start_unix_ns", 0) - trace.metaInteger("time_base_ns", 0)),
          m_waitsOfNoStream(trace.meta("no_stream", "") == "unsigned") {
        m_filters = m_database.integer(
                        "SELECT count(DISTINCT n.name_id) FROM nvtx n JOIN string s ON s.id = n.name_id "
                        "WHERE s.text LIKE 'ProfilerStep%'") > 1;
        store::Statement ranks(m_database, "SELECT rank FROM rank ORDER BY rank");
        while (ranks.step()) m_ranks.push_back(ranks.integer(0));
    }

    const std::vector<int64_t>& ranks() const { return m_ranks; }

    RankEvents read(int64_t rank) {
        RankEvents events;
        events.rank = rank;
        const int64_t untilNs = lastStepNs(rank);
        store::Statement calls(m_database,
                               "SELECT a.correlation_id, a.start_ns, s.text FROM api_call a JOIN string s ON s.id = "
                               "a.name_id WHERE a.rank = ?1 AND a.correlation_id IS NOT NULL");
        calls.bind(1, rank);
        while (calls.step())
            if (calls.integer(1) < untilNs)
                events.launches[calls.integer(0)].push_back({calls.integer(1), std::string(calls.text(2))});
        add(events,
            "SELECT k.start_ns, k.dur_ns, t.native_id, s.text, k.correlation_id FROM kernel k JOIN stream t ON t.id = "
            "k.stream_id JOIN string s ON s.id = k.name_id WHERE k.rank = ?1",
            false);
        add(events,
            "SELECT m.start_ns, m.dur_ns, t.native_id, 'Memcpy ' || CASE m.kind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' "
            "WHEN 3 THEN 'HtoA' WHEN 4 THEN 'AtoH' WHEN 5 THEN 'AtoA' WHEN 6 THEN 'AtoD' WHEN 7 THEN 'DtoA' WHEN 8 "
            "THEN 'DtoD' WHEN 9 THEN 'HtoH' WHEN 10 THEN 'PtoP' ELSE 'unknown' END || ' (' || " +
                memoryName("m.src_memory", "1, 3, 9") + " || ' -> ' || " + memoryName("m.dst_memory", "2, 4, 9") +
                " || ')', m.correlation_id FROM memcpy m JOIN stream t ON t.id = m.stream_id WHERE m.rank = ?1 UNION "
                "ALL SELECT m.start_ns, m.dur_ns, t.native_id, 'Memset (Device)', m.correlation_id FROM memset m JOIN "
                "stream t ON t.id = m.stream_id WHERE m.rank = ?1",
            false);
        // CUpti_ActivitySynchronizationType by the names that Kineto gives them.
        add(events,
            "SELECT y.start_ns, y.dur_ns, t.native_id, CASE y.kind WHEN 2 THEN 'Stream Wait Event' ELSE 'Stream Sync' "
            "END, y.correlation_id FROM synchronization y JOIN stream t ON t.id = y.stream_id WHERE y.rank = ?1",
            true);
        if (m_waitsOfNoStream)
            add(events,
                "SELECT start_ns, dur_ns, 4294967295, 'Context Sync', correlation_id FROM synchronization WHERE rank = "
                "?1 AND stream_id IS NULL AND kind = 4",
                true);
        std::ranges::stable_sort(events.device, {}, &DeviceEvent::startUs);
        return events;
    }

  private:
    /// Host events from here on are dropped.
    int64_t lastStepNs(int64_t rank) {
        if (!m_filters) return std::numeric_limits<int64_t>::max();
        store::Statement last(m_database,
                              "SELECT max(n.start_ns) FROM nvtx n JOIN string s ON s.id = n.name_id WHERE n.rank = ?1 "
                              "AND s.text LIKE 'ProfilerStep%'");
        last.bind(1, rank);
        return last.step() && !last.isNull(0) ? last.integer(0) : std::numeric_limits<int64_t>::min();
    }

    /// Microseconds as the trace has them, in the floating-point numbers that HTA reads them into: of Unix times these
    /// know a quarter of a microsecond.
    double us(int64_t ns) const {
        const int64_t all = ns + m_originNs;
        return static_cast<double>(all / 1000) + static_cast<double>(all % 1000) / 1000;
    }
    int64_t roundedUp(int64_t ns) const { return static_cast<int64_t>(std::ceil(us(ns))); }
    int64_t roundedEnd(int64_t ns, int64_t durNs) const {
        return static_cast<int64_t>(std::floor(us(ns) + static_cast<double>(durNs) / 1000));
    }

    /// A memory by the name that Kineto gives it, SQL. `unknown`: the kinds of copies of which that side is the host.
    static std::string memoryName(const std::string& column, const char* unknown) {
        return "CASE " + column +
               " WHEN 1 THEN 'Pageable' WHEN 2 THEN 'Pinned' WHEN 3 THEN 'Device' WHEN 4 THEN 'Array' WHEN 5 THEN "
               "'Managed' ELSE CASE WHEN m.kind IN (" +
               unknown + ") THEN 'Host' ELSE 'Device' END END";
    }

    void add(RankEvents& events, const std::string& sql, bool isWait) {
        store::Statement rows(m_database, sql);
        rows.bind(1, events.rank);
        while (rows.step()) {
            DeviceEvent event;
            event.startUs = roundedUp(rows.integer(0));
            event.endUs = roundedEnd(rows.integer(0), rows.integer(1));
            event.stream = rows.integer(2);
            event.name = rows.text(3);
            event.kind = kindOf(event.name);
            event.isWait = isWait;
            if (!rows.isNull(4)) event.correlation = rows.integer(4);
            size_t times = m_filters ? 0 : 1;  // merged with each host event of its correlation
            if (event.correlation) {
                const auto launches = events.launches.find(*event.correlation);
                if (launches != events.launches.end()) {
                    event.launchUs = roundedUp(launches->second.back().startNs);
                    if (m_filters) times = launches->second.size();
                }
            }
            for (; times > 0; --times) events.device.push_back(event);
        }
    }

    store::Database& m_database;
    int64_t m_originNs;
    bool m_waitsOfNoStream;
    bool m_filters = false;
    std::vector<int64_t> m_ranks;
};

struct Span {
    int64_t startUs = 0, endUs = 0;
};

/// hta/utils/utils.py, merge_kernel_intervals(): events sorted by start; spans that touch are one.
template <typename Take>
std::vector<Span> merged(const std::vector<DeviceEvent>& events, Take take) {
    std::vector<Span> spans;
    for (const DeviceEvent& event : events) {
        if (!take(event)) continue;
        if (spans.empty() || event.startUs > spans.back().endUs)
            spans.push_back({event.startUs, event.endUs});
        else
            spans.back().endUs = std::max(spans.back().endUs, event.endUs);
    }
    return spans;
}

int64_t lengthOf(const std::vector<Span>& spans) {
    int64_t length = 0;
    for (const Span& span : spans) length += span.endUs - span.startUs;
    return length;
}

int64_t commonOf(const std::vector<Span>& a, const std::vector<Span>& b) {
    int64_t common = 0;
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        common += std::max<int64_t>(0, std::min(a[i].endUs, b[j].endUs) - std::max(a[i].startUs, b[j].startUs));
        a[i].endUs < b[j].endUs ? ++i : ++j;
    }
    return common;
}

/// In percent with two decimals; unknown of nothing.
StatsTable::Cell percent(int64_t part, int64_t whole) {
    if (whole == 0) return std::monostate{};
    return std::round(10000.0 * static_cast<double>(part) / static_cast<double>(whole)) / 100;
}

void addTemporal(const RankEvents& rank, StatsTable& table) {
    const auto all = merged(rank.device, [](const DeviceEvent&) { return true; });
    if (all.empty()) return;
    const int64_t kernel = all.back().endUs - all.front().startUs, idle = kernel - lengthOf(all);
    const int64_t compute =
        lengthOf(merged(rank.device, [](const DeviceEvent& event) { return event.kind == Kind::computation; }));
    const int64_t rest = kernel - compute - idle;
    table.rows.push_back({rank.rank, idle, compute, rest, kernel, percent(idle, kernel), percent(compute, kernel),
                          percent(rest, kernel)});
}

void addOverlap(const RankEvents& rank, StatsTable& table) {
    const auto communication =
        merged(rank.device, [](const DeviceEvent& event) { return event.kind == Kind::communication; });
    const auto computation =
        merged(rank.device, [](const DeviceEvent& event) { return event.kind == Kind::computation; });
    table.rows.push_back({rank.rank, percent(commonOf(communication, computation), lengthOf(communication))});
}

/// A shorter gap between two kernels, us, is the launch's; HTA's default.
constexpr int64_t kKernelDelayUs = 30;

void addIdle(const RankEvents& rank, StatsTable& table) {
    struct Gaps {
        int64_t host = 0, kernel = 0, other = 0;
        std::optional<int64_t> endUs;
    };
    std::map<int64_t, Gaps> ofStream;
    for (const DeviceEvent& event : rank.device) {
        if (event.isWait) continue;
        Gaps& gaps = ofStream[event.stream];
        if (gaps.endUs) {
            const int64_t gap = event.startUs - *gaps.endUs;
            (event.launchUs && *event.launchUs > *gaps.endUs ? gaps.host
             : gap < kKernelDelayUs                          ? gaps.kernel
                                                             : gaps.other) += gap;
        }
        gaps.endUs = event.endUs;
    }
    for (const auto& [stream, gaps] : ofStream)
        table.rows.push_back({rank.rank, stream, gaps.host, gaps.kernel, gaps.other});
}

struct Moments {
    int64_t count = 0, sum = 0, least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
    double mean = 0, squares = 0;  // Welford

    void add(int64_t value) {
        ++count;
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
        const double off = static_cast<double>(value) - mean;
        mean += off / static_cast<double>(count);
        squares += off * (static_cast<double>(value) - mean);
    }
    /// Of a sample, as pandas has it; 0 of one.
    double deviation() const { return count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0; }
};

void addKernels(const RankEvents& rank, StatsTable& table) {
    std::map<std::pair<Kind, std::string>, Moments> byName;
    for (const DeviceEvent& event : rank.device)
        if (event.kind != Kind::other) byName[{event.kind, event.name}].add(event.durUs());
    std::vector<std::pair<std::pair<Kind, std::string>, Moments>> rows(byName.begin(), byName.end());
    std::ranges::stable_sort(rows, std::ranges::greater{}, [](const auto& row) { return row.second.sum; });
    for (const auto& [key, of] : rows)
        table.rows.push_back({rank.rank, key.second, std::string(toText(key.first)), of.count, of.sum, of.mean,
                              of.least, of.most, of.deviation()});
}

double quantile(const std::vector<int64_t>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    return static_cast<double>(sorted[below]) +
           (place - static_cast<double>(below)) * static_cast<double>(sorted[above] - sorted[below]);
}

/// Operations launched on a stream and not begun: one more at each launch, one less at each start.
void addQueue(const RankEvents& rank, StatsTable& table) {
    struct Change {
        int64_t us = 0;
        int by = 0;
    };
    std::map<int64_t, std::vector<Change>> ofStream;
    constexpr const char* kLaunches[] = {
        "cudaLaunchKernel", "cudaLaunchKernelExC",      "cuLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync",
        "hipLaunchKernel",  "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync",  "hipMemcpyWithStream"};
    for (const DeviceEvent& event : rank.device) {
        if (!event.correlation || event.isWait) continue;
        const auto launches = rank.launches.find(*event.correlation);
        if (launches == rank.launches.end() ||
            std::ranges::find(kLaunches, launches->second.back().call) == std::end(kLaunches))
            continue;
        ofStream[event.stream].push_back({*event.launchUs, 1});
        ofStream[event.stream].push_back({event.startUs, -1});
    }
    for (auto& [stream, changes] : ofStream) {
        std::ranges::stable_sort(
            changes, [](const Change& a, const Change& b) { return std::pair(a.us, -a.by) < std::pair(b.us, -b.by); });
        Moments moments;
        std::vector<int64_t> lengths;
        int64_t length = 0;
        for (const Change& change : changes) {
            length += change.by;
            moments.add(length);
            lengths.push_back(length);
        }
        std::ranges::sort(lengths);
        table.rows.push_back({rank.rank, stream, moments.count, moments.mean, moments.deviation(), moments.least,
                              quantile(lengths, 0.25), quantile(lengths, 0.5), quantile(lengths, 0.75), moments.most});
    }
}

}  // namespace

std::vector<StatsTable> htaTables(store::TraceReader& trace) {
    std::vector<StatsTable> tables{
        {"temporal_breakdown",
         "Time of the device (HTA)",
         {"rank", "idle_time_us", "compute_time_us", "non_compute_time_us", "kernel_time_us", "idle_time_pctg",
          "compute_time_pctg", "non_compute_time_pctg"},
         {}},
        {"communication_overlap", "Communication hidden by computation (HTA)", {"rank", "comp_comm_overlap_pctg"}, {}},
        {"idle_breakdown",
         "Gaps of a stream (HTA)",
         {"rank", "stream", "host_wait_us", "kernel_wait_us", "other_us"},
         {}},
        {"kernel_breakdown",
         "Kernels (HTA)",
         {"rank", "name", "type", "count", "sum_us", "mean_us", "min_us", "max_us", "std_us"},
         {}},
        {"queue_length",
         "Operations launched and not begun, at each launch and start (HTA)",
         {"rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max"},
         {}}};
    HtaTrace hta(trace);
    for (const int64_t rank : hta.ranks()) {
        const RankEvents events = hta.read(rank);
        addTemporal(events, tables[0]);
        addOverlap(events, tables[1]);
        addIdle(events, tables[2]);
        addKernels(events, tables[3]);
        addQueue(events, tables[4]);
    }
    return tables;
}

}  // namespace rankscope::stats
