// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QCommandLineParser>
#include <QSize>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::gui {

/// What `rankscope view` passes on.
struct ViewRequest {
    std::vector<std::string> runs;   ///< one, or two to compare
    std::string goTo;                ///< diagnosis to go to, "RS301"
    std::string screenshot;          ///< picture of the window to write instead of showing it
    std::string exported;            ///< .csv, .svg or .png of the view to write instead of showing it
    std::string panel;               ///< to open and bring to the front: "stragglers"
    std::optional<QSize> givenSize;  ///< of the window or picture
    bool dark = false;

    QSize size() const { return givenSize.value_or(QSize(1600, 900)); }
    /// Files are written and no window is shown: nothing the user chose before plays a part, nothing is remembered.
    bool isHeadless() const { return !screenshot.empty() || !exported.empty(); }
};

/// The options that fill a ViewRequest.
class CommandLine {
  public:
    CommandLine();

    /// What is wrong with `words` (the program's name first); empty when nothing is. Looks at no file.
    QString read(const QStringList& words);
    const ViewRequest& request() const noexcept { return m_request; }
    bool wantsHelp() const { return m_parser.isSet("help"); }
    QString helpText() const { return m_parser.helpText(); }

  private:
    QString wrongRuns() const;
    QString wrongFile(const QString& option, const QStringList& endings) const;

    QCommandLineParser m_parser;
    ViewRequest m_request;
};

}  // namespace rankscope::gui
