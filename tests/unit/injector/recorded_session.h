// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "injector/capture_format/reader.h"
#include "injector/session/session.h"
#include "tests/unit/injector/own_process.h"
#include "tests/unit/injector/temporary_folder.h"

namespace rankscope::injector::test {

/// The session of this process, recording into a folder of its own, and what is in its file afterwards.
class RecordedSession {
  public:
    /// `environment` is what the session reads when it starts.
    void start(Cause cause, const std::map<std::string, std::string>& environment) {
        setenv("RANKSCOPE_DIR", m_folder.path().c_str(), 1);
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        unsetenv("RANKSCOPE_CLOCK");
        g_session.isRecording(cause);
        ASSERT_NE(g_session.mode(), Mode::off);
    }

    void finish() {
        g_session.finish(EndCause::exit, 0);
        for (const auto& entry : std::filesystem::directory_iterator(m_folder.path()))
            if (entry.path().extension() == ".cap") read(entry.path());
    }

    /// All records of a type, in the order of the file. After finish().
    template <typename Record>
    std::vector<Record> all(capture::RecordType type) const {
        std::vector<Record> found;
        for (const auto& bytes : m_records) {
            capture::RecordView view;
            view.data = bytes.data();
            view.bytes = bytes.size();
            if (view.type() == type) found.push_back(view.as<Record>());
        }
        return found;
    }
    std::string text(uint64_t id) const {
        const auto found = m_texts.find(id);
        return found == m_texts.end() ? "" : found->second;
    }
    /// Messages of a source's status records.
    std::vector<std::pair<uint16_t, std::string>> statuses(capture::Source source) const {
        std::vector<std::pair<uint16_t, std::string>> found;
        for (const auto& status : all<capture::StatusRecord>(capture::RecordType::status))
            if (status.source == source) found.emplace_back(status.head.aux, text(status.message));
        return found;
    }

  private:
    void read(const std::string& path) {
        capture::CaptureReader reader(path);
        while (const auto* record = reader.next()) {
            if (record->type() == capture::RecordType::string)
                m_texts[record->as<capture::StringRecord>().id] = record->text();
            m_records.emplace_back(record->data, record->data + record->bytes);
        }
        EXPECT_TRUE(reader.losses().empty());
    }

    TemporaryFolder m_folder;
    std::map<uint64_t, std::string> m_texts;
    std::vector<std::vector<uint8_t>> m_records;
};

}  // namespace rankscope::injector::test
