// SPDX-License-Identifier: Apache-2.0
// XSpace, what XLA's profiler writes (HOST.xplane.pb), as far as it is read. Messages and numbers of their fields as in
// openxla/xla, xla/tsl/profiler/protobuf/xplane.proto of 2025; they have not changed since TensorFlow 2.2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/importers/import_loss.h"

namespace rankscope::collector {

/// A value that a plane or an event has under a name. Views are of the file's text.
struct XStat {
    std::optional<int64_t> number;
    std::string_view text;  ///< its first KiB
};

/// By the place of their names among those asked for; empty where there is none.
using XStats = std::vector<std::optional<XStat>>;

struct XEvent {
    uint64_t nameKey = 0;  ///< the same for events with the same name of a plane, another in each plane; 0: none
    std::string_view name, displayName;
    int64_t startNs = 0;
    int64_t durNs = 0;
    XStats stats;

    std::optional<int64_t> number(size_t stat) const;
    std::string_view text(size_t stat) const;
};

struct XLine {
    int64_t id = 0;
    std::string_view name;
};

/// Is led through a recording: each plane, its lines, the events of each.
class XSpaceVisitor {
  public:
    virtual ~XSpaceVisitor() = default;
    /// Whether its lines are wanted.
    virtual bool plane(std::string_view name, const XStats& stats) = 0;
    /// Whether its events are wanted.
    virtual bool line(const XLine& line) = 0;
    virtual void event(const XEvent& event) = 0;
};

class XSpace {
  public:
    /// Stats of other names than these are not read. Throws ImportError for what is no such file.
    XSpace(const std::filesystem::path& file, std::vector<std::string_view> stats);

    const std::string& host() const { return m_host; }
    /// Of the file as a whole.
    const ImportLosses& losses() const { return m_losses; }

    /// In the order of the file. Nothing of it is held, however large it is, but the names of one plane.
    void visit(XSpaceVisitor& visitor, ImportLosses& losses);

  private:
    struct Metadata;
    void visitPlane(std::string_view message, XSpaceVisitor& visitor, ImportLosses& losses);
    void visitLine(std::string_view message, const Metadata& metadata, XSpaceVisitor& visitor, ImportLosses& losses);
    void visitEvents(std::string_view line, int64_t startNs, const Metadata& metadata, XSpaceVisitor& visitor,
                     ImportLosses& losses);
    uint64_t offsetOf(std::string_view part) const { return static_cast<uint64_t>(part.data() - m_text.data()); }

    std::vector<std::string_view> m_stats;
    std::string m_text;
    std::string m_host;
    uint64_t m_nameKeys = 0;
    ImportLosses m_losses;
};

}  // namespace rankscope::collector
