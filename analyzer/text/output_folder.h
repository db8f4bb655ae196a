// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rankscope::text {

/// A folder of files that is there as a whole or not at all. A new one is filled beside its place and renamed in
/// commit(); one that is there, and empty, may be the place of a mount, and is filled where it is. Without commit()
/// nothing is left. Throws std::filesystem::filesystem_error with the name given and the reason.
class OutputFolder {
  public:
    /// `name`: what is not there, or an empty folder.
    explicit OutputFolder(const std::filesystem::path& name);
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

    /// Where the files are to be put.
    const std::filesystem::path& place() const noexcept { return m_place; }
    void commit();

  private:
    std::filesystem::path m_name;
    std::filesystem::path m_place;  // the same as m_name: filled where it is
    bool m_isOpen = true;
};

}  // namespace rankscope::text
