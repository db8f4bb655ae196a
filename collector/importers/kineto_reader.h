// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "collector/importers/import_loss.h"
#include "collector/importers/input_file.h"
#include "collector/importers/kineto_event.h"
#include "collector/importers/kineto_header.h"
#include "collector/importers/text_window.h"

namespace rankscope::collector {

/// Reads one Kineto or Chrome trace front to back in bounded memory. The array of events is cut into slices of about
/// kSliceBytes which are parsed in place; a slice that the parser refuses is gone through event by event, and what no
/// parser accepts is skipped and counted as loss with its offset. Throws ImportError only when the text is no trace at
/// all.
class KinetoReader {
  public:
    using EventSink = std::function<void(const KinetoEvent&)>;

    static constexpr size_t kSliceBytes = 1 << 20;
    /// An event larger than this is damage (an unescaped quote that swallowed the rest), not an event.
    static constexpr size_t kMaxEventBytes = 16 << 20;

    KinetoReader(InputFile& file, ImportLosses& losses) : m_file(file), m_window(file), m_losses(losses) {}

    /// `sink` is called for every decoded event, in file order. The header may still change until read() returns: some
    /// of its members follow the events.
    void read(const EventSink& sink);

    const KinetoHeader& header() const { return m_header; }
    /// Events seen, needed or not, damaged ones included.
    uint64_t eventCount() const { return m_eventCount; }
    bool sawEvents() const { return m_sawEvents; }

  private:
    bool skipSpace();
    void readDocument();
    bool readMember();
    bool readKey(std::string& key);
    bool readHeaderMember(const std::string& key);
    void skipValue();
    bool findEventsAfterDamage();

    void readEvents();
    size_t readSlice(size_t bytes);
    void readOneEvent();
    size_t findEventEnd();
    void deliver(const KinetoEvent& event, uint64_t offset);
    void skipDamage(const char* cause);
    void reportCutOff(const char* where);

    InputFile& m_file;
    TextWindow m_window;
    ImportLosses& m_losses;
    KinetoHeader m_header;
    simdjson::ondemand::parser m_parser;
    EventSink m_sink;
    uint64_t m_eventCount = 0;
    bool m_sawEvents = false;
    bool m_cutOff = false;
};

}  // namespace rankscope::collector
