// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/about_run.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "analyzer/export/json_string.h"
#include "analyzer/export/kernel_name.h"
#include "collector/store/reader.h"
#include "collector/store/tables.h"

namespace rankscope::exports {
namespace {

class AboutRun {
  public:
    explicit AboutRun(store::TraceReader& trace) : m_trace(trace) {}

    std::string text() {
        append("{\"tool\":\"rankscope\",\"run\":");
        appendJsonString(m_out, m_trace.meta("run_name", ""));
        meta();
        table<store::Host>();
        table<store::Process>([](store::Process& row) { row.executable.reset(); });
        table<store::Rank>();
        table<store::Device>();
        table<store::MachineLink>();
        table<store::Thread>();
        table<store::Stream>();
        table<store::Communicator>();
        table<store::CommunicatorMember>();
        table<store::FailedAllocation>();
        table<store::Loss>();
        table<store::SourceStatus>();
        symbols();
        append("}");
        return fmt::to_string(m_out);
    }

  private:
    void append(std::string_view text) { m_out.append(text.data(), text.data() + text.size()); }

    void meta() {
        append(",\n\"meta\":{");
        bool isFirst = true;
        for (const auto& [key, value] : m_trace.meta()) {
            if (key == "command") continue;          // may hold what is nobody else's business
            if (key == store::kShardsKey) continue;  // an export is one file
            if (!isFirst) append(",");
            isFirst = false;
            appendJsonString(m_out, key);
            append(":");
            appendJsonString(m_out, value);
        }
        append("}");
    }

    template <typename Row>
    void table(void (*change)(Row&) = nullptr) {
        const char* name = store::Table<Row>::kName;
        if (!m_trace.hasTable(name)) return;
        fmt::format_to(std::back_inserter(m_out), ",\n\"{}\":[", name);
        bool isFirst = true;
        for (Row& row : m_trace.all<Row>()) {
            if (change != nullptr) change(row);
            append(isFirst ? "{" : ",\n{");
            isFirst = false;
            m_firstColumn = true;
            std::apply([&](const auto&... column) { (value(column.name, row.*(column.field)), ...); },
                       store::Table<Row>::kColumns);
            append("}");
        }
        append("]");
    }

    template <typename Value>
    void value(const char* name, const Value& value) {
        if constexpr (requires { value.has_value(); }) {
            if (value) this->value(name, *value);
        } else {
            fmt::format_to(std::back_inserter(m_out), "{}\"{}\":", m_firstColumn ? "" : ",", name);
            m_firstColumn = false;
            if constexpr (std::is_same_v<Value, std::string>) {
                appendJsonString(m_out, value);
            } else if constexpr (requires { store::toText(value); }) {
                appendJsonString(m_out, store::toText(value));
            } else {
                fmt::format_to(std::back_inserter(m_out), "{}", static_cast<int64_t>(value));
            }
        }
    }

    void symbols() {
        append(",\n\"symbols\":{");
        store::Statement rows(m_trace.database(), "SELECT DISTINCT name_id FROM kernel ORDER BY name_id");
        bool isFirst = true;
        while (rows.step()) {
            const std::string& name = m_trace.string(rows.integer(0));
            if (exportedKernelName(name) == name) continue;
            fmt::format_to(std::back_inserter(m_out), "{}\"{}\":", isFirst ? "" : ",\n", rows.integer(0));
            isFirst = false;
            appendJsonString(m_out, name);
        }
        append("}");
    }

    store::TraceReader& m_trace;
    fmt::memory_buffer m_out;
    bool m_firstColumn = true;
};

}  // namespace

std::string aboutRun(store::TraceReader& trace) {
    return AboutRun(trace).text();
}

}  // namespace rankscope::exports
