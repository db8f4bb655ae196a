// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <ostream>

#include "analyzer/export/exported_event.h"
#include "analyzer/export/json_string.h"

namespace rankscope::exports {
namespace {

/// Microseconds with the nanoseconds behind the point.
void appendTime(fmt::memory_buffer& out, int64_t ns) {
    const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    fmt::format_to(std::back_inserter(out), "{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

class ChromeTrace : public ExportSink {
  public:
    ChromeTrace(std::ostream& out, const std::string& about) : m_out(out) {
        text("{\"displayTimeUnit\":\"ns\",\"otherData\":");
        text(about);
        text(",\n\"traceEvents\":[\n");
    }

    void process(const ExportedProcess& process) override {
        metadata("process_name", process.id, 0, process.name);
        begin("process_sort_index", "M", process.id, 0);
        // Findings first.
        format(",\"args\":{{\"sort_index\":{}}}}}", process.id == kFindingsProcess ? -1 : process.id);
    }

    void track(const ExportedTrack& track) override {
        // Viewers want small thread numbers, unique in their process.
        const auto thread = static_cast<int64_t>(m_threads[track.process].size()) + 1;
        m_threads[track.process][track.id] = thread;
        metadata("thread_name", track.process, thread, track.name);
        begin("thread_sort_index", "M", track.process, thread);
        format(",\"args\":{{\"sort_index\":{}}}}}", thread);
    }

    void event(const ExportedTrack& track, const ExportedEvent& event) override {
        const int64_t thread = m_threads[track.process][track.id];
        begin(event.name, event.durNs ? "X" : "i", track.process, thread);
        format(",\"cat\":\"{}\",\"ts\":", toText(event.kind));
        appendTime(m_buffer, event.startNs);
        if (event.durNs) {
            text(",\"dur\":");
            appendTime(m_buffer, *event.durNs);
        } else {
            text(",\"s\":\"t\"");
        }
        arguments(event);
        text("}");
        for (const ExportedFlow& flow : event.flows) arrow(flow, event, track.process, thread);
        if (m_buffer.size() > kFlushBytes) flush();
    }

    void counter(int64_t process, std::string_view name, int64_t ns, int64_t value) override {
        begin(name, "C", process, 0);
        text(",\"cat\":\"counter\",\"ts\":");
        appendTime(m_buffer, ns);
        format(",\"args\":{{\"value\":{}}}}}", value);
        if (m_buffer.size() > kFlushBytes) flush();
    }

    void finish() override {
        text("\n]}\n");
        flush();
    }

  private:
    static constexpr size_t kFlushBytes = 1 << 20;

    void text(std::string_view part) { m_buffer.append(part.data(), part.data() + part.size()); }
    template <typename... Values>
    void format(fmt::format_string<Values...> pattern, Values&&... values) {
        fmt::format_to(std::back_inserter(m_buffer), pattern, std::forward<Values>(values)...);
    }

    void begin(std::string_view name, const char* phase, int64_t process, int64_t thread) {
        text(m_first ? "{\"name\":" : ",\n{\"name\":");
        m_first = false;
        appendJsonString(m_buffer, name);
        format(",\"ph\":\"{}\",\"pid\":{},\"tid\":{}", phase, process, thread);
    }

    void metadata(const char* what, int64_t process, int64_t thread, const std::string& name) {
        begin(what, "M", process, thread);
        text(",\"args\":{\"name\":");
        appendJsonString(m_buffer, name);
        text("}}");
    }

    void arrow(const ExportedFlow& flow, const ExportedEvent& event, int64_t process, int64_t thread) {
        const char* phase = flow.place == ExportedFlow::Place::first  ? "s"
                            : flow.place == ExportedFlow::Place::last ? "f"
                                                                      : "t";
        begin(flow.isLaunch ? "launch" : "collective", phase, process, thread);
        format(",\"cat\":\"{}\",\"id\":\"{:#x}\",\"ts\":", flow.isLaunch ? "launch" : "collective", flow.id);
        appendTime(m_buffer, event.startNs);
        // Bound to the event that encloses it, not to the next one.
        text(phase[0] == 's' ? "}" : ",\"bp\":\"e\"}");
    }

    void argument(const char* name, const std::optional<int64_t>& value) {
        if (!value) return;
        format("{}\"{}\":{}", m_arguments++ == 0 ? "" : ",", name, *value);
    }

    void argument(const char* name, std::string_view value) {
        if (value.empty()) return;
        format("{}\"{}\":", m_arguments++ == 0 ? "" : ",", name);
        appendJsonString(m_buffer, value);
    }

    void arguments(const ExportedEvent& event) {
        m_arguments = 0;
        text(",\"args\":{");
        forEachDetail(event, [this](const char* name, const auto& value) { argument(name, value); });
        text("}");
    }

    void flush() {
        m_out.write(m_buffer.data(), static_cast<std::streamsize>(m_buffer.size()));
        m_buffer.clear();
    }

    std::ostream& m_out;
    fmt::memory_buffer m_buffer;
    std::map<int64_t, std::map<int64_t, int64_t>> m_threads;  // by process and track
    bool m_first = true;
    int m_arguments = 0;
};

}  // namespace

std::unique_ptr<ExportSink> chromeTrace(std::ostream& out, const std::string& about) {
    return std::make_unique<ChromeTrace>(out, about);
}

}  // namespace rankscope::exports
