// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "analyzer/export/exported_event.h"
#include "analyzer/text/csv_text.h"

namespace rankscope::exports {
namespace {

class CsvTable : public ExportSink {
  public:
    explicit CsvTable(std::ostream& out) : m_out(out) {
        m_out << "rank,host,track,kind,name,start_ns,dur_ns";
        forEachArgument({}, [this](const char* name, const auto&) { m_out << ',' << name; });
        m_out << "\r\n";
    }

    void process(const ExportedProcess& process) override { m_host = process.host; }
    void track(const ExportedTrack&) override {}

    void event(const ExportedTrack& track, const ExportedEvent& event) override {
        if (event.kind == EventKind::finding) return;  // a claim, not something that was recorded
        m_line = fmt::format("{}", track.process);
        word(m_host);
        word(track.name);
        word(toText(event.kind));
        word(event.name);
        word(event.startNs);
        word(event.durNs);
        forEachArgument(event, [this](const char*, const auto& value) { word(value); });
        m_line += "\r\n";
        m_out << m_line;
    }

    void finish() override { m_out.flush(); }

  private:
    void word(const std::optional<int64_t>& value) {
        m_line += ',';
        if (value) fmt::format_to(std::back_inserter(m_line), "{}", *value);
    }

    void word(std::string_view bytes) { m_line += ',' + text::csvText(bytes); }

    std::ostream& m_out;
    std::string m_host;
    std::string m_line;
};

}  // namespace

std::unique_ptr<ExportSink> csvTable(std::ostream& out) {
    return std::make_unique<CsvTable>(out);
}

}  // namespace rankscope::exports
