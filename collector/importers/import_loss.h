// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::collector {

/// What an import could not read or could not know, for the loss table.
struct ImportLoss {
    std::string kind;
    std::string severity;  ///< info | warning | error
    int64_t count = 1;
    std::optional<uint64_t> offset;  ///< of the first occurrence, in the uncompressed text
    std::string message;
};

/// Collects losses of one file; repeated ones of a kind are counted in one row, at the offset of the first.
class ImportLosses {
  public:
    void add(const std::string& kind, const std::string& severity, std::optional<uint64_t> offset,
             const std::string& message, int64_t count = 1) {
        for (ImportLoss& loss : m_losses) {
            if (loss.kind == kind && loss.message == message) {
                loss.count += count;
                return;
            }
        }
        m_losses.push_back({kind, severity, count, offset, message});
    }
    const std::vector<ImportLoss>& all() const { return m_losses; }

  private:
    std::vector<ImportLoss> m_losses;
};

}  // namespace rankscope::collector
