// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/kept_choices.h"

#include <QSettings>

#include "gui/session/lane_choices_text.h"

namespace rankscope::gui {
namespace {

constexpr int kMsBeforeKeeping = 400;  // a hand that reorders ranks is not finished after the first
constexpr qsizetype kMostRuns = 100;
constexpr int kLayoutVersion = 2;  // raised when docks change so that old places make no sense

QSettings settings() {
    return QSettings(QSettings::IniFormat, QSettings::UserScope, "rankscope", "view");
}

QString layoutKey(size_t panes) {
    return panes == 1 ? "layout/one-run" : "layout/two-runs";
}

void writeChoices(const QString& run, const LaneChoices& choices) {
    QSettings file = settings();
    QStringList recent = file.value("recent-runs").toStringList();
    recent.removeAll(run);
    if (choices == LaneChoices{}) {
        file.remove("runs/" + run);
    } else {
        recent.prepend(run);
        file.setValue("runs/" + run, QString::fromStdString(textOf(choices)));
    }
    for (; recent.size() > kMostRuns; recent.removeLast()) file.remove("runs/" + recent.last());
    file.setValue("recent-runs", recent);
}

}  // namespace

KeptChoices::KeptChoices(RunPane& pane) : QObject(&pane), m_pane(pane) {
    m_soon.setSingleShot(true);
    m_soon.setInterval(kMsBeforeKeeping);
    connect(&m_soon, &QTimer::timeout, this, &KeptChoices::keep);
    connect(&m_pane.model(), &TimelineModel::lanesChanged, this, [this] {
        if (!m_run.isEmpty() && !(m_pane.model().lanes().choices() == m_known)) m_soon.start();
    });
}

KeptChoices::~KeptChoices() = default;

void KeptChoices::restore(std::function<void()> then) {
    m_pane.session().queries().ask(
        this,
        [run = m_pane.model().sharedRun()](store::TraceReader& reader) -> std::string {
            try {
                return runIdentity(run->name, reader.meta("start_unix_ns", ""), run->outline.ranks.size());
            } catch (const std::exception&) {
                return {};  // a damaged file is shown as it is
            }
        },
        [this, then = std::move(then)](const std::string& identity) {
            m_run = QString::fromStdString(identity);
            m_known = m_pane.model().lanes().choices();
            const QString text = m_run.isEmpty() ? QString() : settings().value("runs/" + m_run).toString();
            if (!text.isEmpty()) {
                m_known = onlyKnown(laneChoicesOf(text.toStdString()), m_pane.model().lanes().outline());
                m_known.filter.clear();  // kept by earlier versions
                m_pane.model().changeLanes([this](LaneTree& lanes) { lanes.setChoices(m_known); });
            }
            then();
        });
}

void KeptChoices::keep() {
    m_known = m_pane.model().lanes().choices();
    LaneChoices kept = m_known;
    kept.filter
        .clear();  // it is for a moment: a window that opens with most ranks hidden looks like a run that lost them
    writeChoices(m_run, kept);
}

void KeptChoices::finish() {
    if (!m_soon.isActive()) return;
    m_soon.stop();
    keep();
}

void KeptChoices::forget() {
    m_pane.model().changeLanes([](LaneTree& lanes) { lanes.setChoices({}); });
    m_soon.stop();
    if (!m_run.isEmpty()) keep();
}

void keepLayout(const QMainWindow& window, size_t panes) {
    QSettings file = settings();
    file.setValue(layoutKey(panes) + "/geometry", window.saveGeometry());
    file.setValue(layoutKey(panes) + "/docks", window.saveState(kLayoutVersion));
}

bool restoreLayout(QMainWindow& window, size_t panes, bool withSize) {
    const QSettings file = settings();
    if (withSize) window.restoreGeometry(file.value(layoutKey(panes) + "/geometry").toByteArray());
    return window.restoreState(file.value(layoutKey(panes) + "/docks").toByteArray(), kLayoutVersion);
}

void forgetLayout(size_t panes) {
    settings().remove(layoutKey(panes));
}

void keepLabelWidth(int width) {
    settings().setValue("label-width", width);
}

int keptLabelWidth(int otherwise) {
    bool isNumber = false;
    const int width = settings().value("label-width").toInt(&isNumber);
    return isNumber ? width : otherwise;
}

void forgetLabelWidth() {
    settings().remove("label-width");
}

void keepRecentFile(const QString& file) {
    constexpr qsizetype kMostFiles = 12;
    QStringList files = recentFiles();
    files.removeAll(file);
    files.prepend(file);
    settings().setValue("recent-files", QStringList(files.mid(0, kMostFiles)));
}

QStringList recentFiles() {
    return settings().value("recent-files").toStringList();
}

void keepDark(bool dark) {
    settings().setValue("dark", dark);
}

bool keptDark() {
    return settings().value("dark", false).toBool();
}

}  // namespace rankscope::gui
