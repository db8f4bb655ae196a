// SPDX-License-Identifier: Apache-2.0
// XSpace, what XLA's profiler writes (HOST.xplane.pb), as far as it is read. Messages and numbers of their fields as in
// openxla/xla, xla/tsl/profiler/protobuf/xplane.proto of 2025; they have not changed since TensorFlow 2.2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/importers/import_loss.h"

namespace rankscope::collector {

/// Views are of the file's text.
struct XStat {
    std::string_view name;
    std::optional<int64_t> number;
    std::string_view text;
};

struct XEvent {
    std::string_view name, displayName;
    int64_t startNs = 0;
    int64_t durNs = 0;
    std::vector<XStat> stats;

    std::optional<int64_t> number(std::string_view stat) const;
    std::string_view text(std::string_view stat) const;
};

struct XLine {
    int64_t id = 0;
    std::string_view name;
};

struct XPlane {
    std::string_view name;
    std::vector<XStat> stats;
    std::vector<XLine> lines;
};

class XSpace {
  public:
    /// Throws ImportError for what is no such file.
    explicit XSpace(const std::filesystem::path& file);

    const std::vector<std::string>& hosts() const { return m_hosts; }
    ImportLosses& losses() { return m_losses; }

    /// Visits planes in their order, and the events of those lines of it that are wanted.
    using Wanted = std::function<bool(const XPlane& plane, const XLine& line)>;
    using Visit = std::function<void(const XPlane& plane, const XLine& line, const XEvent& event)>;
    void forEachEvent(const Wanted& wanted, const Visit& visit);
    std::vector<XPlane> planes();

  private:
    struct Metadata;
    void readPlane(std::string_view message, const Wanted& wanted, const Visit& visit, XPlane& plane);

    std::filesystem::path m_file;
    std::string m_text;
    std::vector<std::string_view> m_planes;
    std::vector<std::string> m_hosts;
    ImportLosses m_losses;
};

}  // namespace rankscope::collector
