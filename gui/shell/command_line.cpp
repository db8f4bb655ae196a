// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/command_line.h"

#include <QFileInfo>
#include <algorithm>

#include "gui/shell/main_window.h"

namespace rankscope::gui {
namespace {

const QStringList kPictures{".png", ".svg", ".jpg", ".jpeg", ".bmp"};

bool parseSize(const QString& text, QSize& size) {
    const QStringList parts = text.split('x');
    bool okWidth = false, okHeight = false;
    if (parts.size() == 2) size = QSize(parts[0].toInt(&okWidth), parts[1].toInt(&okHeight));
    return okWidth && okHeight && size.width() >= 320 && size.height() >= 240 && size.width() <= 16384 &&
           size.height() <= 16384;
}

}  // namespace

CommandLine::CommandLine() {
    m_parser.addHelpOption();
    m_parser.addPositionalArgument("RUN", "Run name, run directory or .db file");
    m_parser.addOptions({{"goto", "Finding to go to, for example RS301", "ID"},
                         {"screenshot", "Write a picture of the window (.png, .svg) and end", "FILE"},
                         {"export", "Write what the timeline shows (.csv of its events, .svg, .png) and end", "FILE"},
                         {"panel", "Panel to open: " + MainWindow::panelNames().join(", "), "NAME"},
                         {"size", "Size of the window or picture", "WxH", "1600x900"},
                         {"dark", "Dark colours"}});
}

QString CommandLine::wrongRuns() const {
    for (const std::string& run : m_request.runs)
        if (run.empty()) return "a run's name is empty";
    if (m_request.runs.size() > 2 || (m_request.runs.empty() && m_request.isHeadless()))
        return "one run is to be named, or two to compare";
    return {};
}

// Before anything is loaded: a picture that cannot be written is not worth the wait.
QString CommandLine::wrongFile(const QString& option, const QStringList& endings) const {
    if (!m_parser.isSet(option)) return {};
    const QString file = m_parser.value(option);
    if (file.isEmpty()) return "--" + option + " takes the name of a file";
    if (std::any_of(endings.begin(), endings.end(),
                    [&](const QString& ending) { return file.endsWith(ending, Qt::CaseInsensitive); }))
        return {};
    return QString("--%1 writes files that end in %2, not %3").arg(option, endings.join(", "), file);
}

QString CommandLine::read(const QStringList& words) {
    if (!m_parser.parse(words)) return m_parser.errorText();
    for (const QString& run : m_parser.positionalArguments()) m_request.runs.push_back(run.toStdString());
    m_request.goTo = m_parser.value("goto").toStdString();
    m_request.screenshot = m_parser.value("screenshot").toStdString();
    m_request.exported = m_parser.value("export").toStdString();
    m_request.panel = m_parser.value("panel").toStdString();
    m_request.dark = m_parser.isSet("dark");
    for (const QString& wrong :
         {wrongFile("screenshot", kPictures), wrongFile("export", QStringList{".csv"} + kPictures), wrongRuns()})
        if (!wrong.isEmpty()) return wrong;
    if (!m_request.screenshot.empty() && QFileInfo(m_parser.value("screenshot")).absoluteFilePath() ==
                                             QFileInfo(m_parser.value("export")).absoluteFilePath())
        return "--screenshot and --export name the same file: one would replace the other";
    if (m_parser.isSet("goto") && m_request.goTo.empty())
        return "--goto takes the name of a finding, for example RS301";
    if (m_parser.isSet("panel") && !MainWindow::panelNames().contains(m_parser.value("panel")))
        return QString("there is no panel '%1'; there are %2")
            .arg(m_parser.value("panel"), MainWindow::panelNames().join(", "));
    if (m_request.panel == "differences" && m_request.runs.size() < 2)
        return "--panel differences takes two runs to compare";
    QSize size;
    if (!parseSize(m_parser.value("size"), size)) return "--size takes WIDTHxHEIGHT in pixels, 320x240 to 16384x16384";
    if (m_parser.isSet("size")) m_request.givenSize = size;
    return {};
}

}  // namespace rankscope::gui
