// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <cmath>

#include "collector/importers/exported_run.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/text_window.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

/// What is told of a run: a million streams, threads and members of communicators have less.
constexpr size_t kMostAboutBytes = size_t{256} << 20;
/// A finding's report stands in its event.
constexpr size_t kMostEventBytes = size_t{16} << 20;

class ExportedChrome {
  public:
    explicit ExportedChrome(const std::filesystem::path& file)
        : m_input(file), m_window(m_input), m_run(file, readExportedAbout(file, about())) {}

    void read(const std::function<void(FileRank)>& take) {
        if (!skipTo("\"traceEvents\"") || !skipTo("["))
            throw ImportError(m_input.path(), m_window.offset(), "the export has no events", "export the run again");
        while (skipSeparators()) {
            if (m_window.data()[0] == ']') return m_run.handOver(take);
            const size_t end = endOfEvent();
            if (end != kNotFound && add({m_window.data(), end})) {
                m_window.advance(end);
                continue;
            }
            const uint64_t offset = m_window.offset();
            if (!skipLine()) break;
            m_run.losses().add("bad_block", "warning", offset, "lines that are damaged are left out");
        }
        m_run.losses().add("torn_tail", "error", m_window.offset(),
                           "the file is cut off" +
                               (m_input.damage().empty() ? std::string() : " (" + m_input.damage() + ")") +
                               "; the events in front of that are imported");
        m_run.handOver(take);
    }

  private:
    /// The value of otherData.
    std::string about() {
        if (skipTo("\"otherData\"") && skipTo(":") && skipSeparators()) {
            const size_t end = endOfObject(size_t{1} << 20, kMostAboutBytes, "");
            if (end != kNotFound) {
                std::string text(m_window.data(), end);
                m_window.advance(end);
                return text;
            }
        }
        throw ImportError(m_input.path(), m_window.offset(), "the export is cut off before its first event",
                          "export the run again");
    }

    /// Moves behind a text that stands within the next 64 KiB.
    bool skipTo(std::string_view text) {
        m_window.require(size_t{64} << 10);
        const size_t at = std::string_view(m_window.data(), m_window.size()).find(text);
        if (at == std::string_view::npos) return false;
        m_window.advance(at + text.size());
        return true;
    }

    bool skipSeparators() {
        while (m_window.require(1)) {
            size_t at = 0;
            while (at < m_window.size() && (isJsonSpace(m_window.data()[at]) || m_window.data()[at] == ',')) ++at;
            m_window.advance(at);
            if (m_window.size() > 0) return true;
        }
        return false;
    }

    /// The end of the object that is next. What is not before the first `bound` is not looked for further.
    size_t endOfObject(size_t first, size_t most, std::string_view bound) {
        if (m_window.data()[0] != '{') return kNotFound;
        for (size_t bytes = first;; bytes *= 4) {
            const bool isAll = !m_window.require(bytes);
            const std::string_view text(m_window.data(), std::min(bytes, m_window.size()));
            const size_t bounded = bound.empty() ? std::string_view::npos : text.find(bound);
            ValueScanner scanner;
            const size_t end = scanner.feed(text.substr(0, bounded));
            if (end != kNotFound || isAll || bounded != std::string_view::npos || bytes >= most) return end;
        }
    }

    /// Events stand on lines of their own, so that the next line with one ends an event that is damaged: otherwise each
    /// of many such would be looked for to the end of the file.
    size_t endOfEvent() { return endOfObject(4096, kMostEventBytes, "\n{"); }

    bool skipLine() {
        while (m_window.require(1)) {
            const std::string_view text(m_window.data(), m_window.size());
            const size_t end = text.find('\n');
            m_window.advance(end == std::string_view::npos ? text.size() : end + 1);
            if (end != std::string_view::npos) return true;
        }
        return false;
    }

    static std::optional<int64_t> nanoseconds(element event, const char* member) {
        double us = 0;
        // A double of microseconds holds every nanosecond of 100 days; job clocks begin at 0.
        if (event[member].get(us) != simdjson::SUCCESS || !(std::abs(us) < 2.3e15)) return std::nullopt;
        return std::llround(us * 1000);
    }

    bool add(std::string_view text) {
        element event;
        std::string_view phase;
        int64_t process = 0;
        if (m_parser.parse(text.data(), text.size()).get(event) != simdjson::SUCCESS ||
            event["ph"].get(phase) != simdjson::SUCCESS)
            return false;
        if (event["pid"].get(process) != simdjson::SUCCESS) return false;
        ToldEvent told;
        if (event["name"].get(told.name) != simdjson::SUCCESS) return false;
        if (phase == "M" && told.name == "process_name") m_run.addRank(process);
        if (phase == "C") return addCounter(event, process, told.name);
        if (phase != "X" && phase != "i") return true;  // names of tracks, arrows
        const auto start = nanoseconds(event, "ts"), length = nanoseconds(event, "dur");
        if (!start || (phase == "X" && !length) || event["cat"].get(told.category) != simdjson::SUCCESS) return false;
        told.process = process;
        told.startNs = *start;
        told.durNs = length;
        simdjson::dom::object arguments;
        if (event["args"].get(arguments) == simdjson::SUCCESS)
            for (const auto& [key, value] : arguments) {
                ToldValue one;
                int64_t number = 0;
                std::string_view word;
                if (value.get(number) == simdjson::SUCCESS) one.number = number;
                if (value.get(word) == simdjson::SUCCESS) one.text = word;
                told.arguments.emplace_back(key, one);
            }
        m_run.add(told);
        return true;
    }

    bool addCounter(element event, int64_t process, std::string_view name) {
        const auto time = nanoseconds(event, "ts");
        int64_t value = 0;
        if (!time || event["args"]["value"].get(value) != simdjson::SUCCESS) return false;
        m_run.addCounter(process, name, *time, value);
        return true;
    }

    InputFile m_input;
    TextWindow m_window;
    ExportedRun m_run;
    simdjson::dom::parser m_parser;
};

}  // namespace

void readExportedChrome(const std::filesystem::path& file, const std::function<void(FileRank)>& take) {
    ExportedChrome(file).read(take);
}

}  // namespace rankscope::collector
