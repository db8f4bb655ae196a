// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: the input as files, and as a list of choices.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::fuzz {

inline std::string_view textOf(const uint8_t* data, size_t bytes) {
    return {reinterpret_cast<const char*>(data), bytes};
}

/// One folder for all inputs of a process.
inline const tests::TraceFolder& folder() {
    static const tests::TraceFolder only;
    return only;
}

/// Takes numbers and texts off the front of an input; zeros and nothing when it is used up.
class Choices {
  public:
    Choices(const uint8_t* data, size_t bytes) : m_left(textOf(data, bytes)) {}

    bool isEmpty() const { return m_left.empty(); }
    uint8_t byte() { return static_cast<uint8_t>(word(1)); }
    int64_t number() { return static_cast<int64_t>(word(8)); }
    std::string_view text(size_t bytes) {
        const std::string_view taken = m_left.substr(0, bytes);
        m_left.remove_prefix(taken.size());
        return taken;
    }
    std::string_view rest() { return text(m_left.size()); }

  private:
    uint64_t word(size_t bytes) {
        uint64_t value = 0;
        const std::string_view taken = text(bytes);
        std::memcpy(&value, taken.data(), taken.size());
        return value;
    }
    std::string_view m_left;
};

}  // namespace rankscope::fuzz
