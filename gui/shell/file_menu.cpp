// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/file_menu.h"

#include <QDropEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QUrl>

#include "gui/shell/kept_choices.h"
#include "gui/shell/run_chooser.h"

namespace rankscope::gui {
namespace {

constexpr qsizetype kMostAtOnce = 2;  // runs that a window can show

QStringList filesOf(const QMimeData& data) {
    QStringList files;
    for (const QUrl& url : data.urls())
        if (url.isLocalFile()) files << url.toLocalFile();
    return files;
}

}  // namespace

FileMenu::FileMenu(QMainWindow& window, QMenu& menu, const QStringList& runs)
    : QObject(&window), m_window(window), m_recent(new QMenu("Open &recent", &menu)) {
    for (const QString& run : runs) m_runs << QFileInfo(run).absoluteFilePath();
    menu.addAction("&Open \u2026", QKeySequence::Open, this, [this] {
        if (const QString file = askForRun(&m_window, "Open a run"); !file.isEmpty()) open({file});
    });
    menu.addMenu(m_recent);
    QAction* beside = menu.addAction("&Compare with \u2026", this, [this] {
        if (const QString file = askForRun(&m_window, "Compare with a run"); !file.isEmpty())
            open({m_runs.front(), file});
    });
    beside->setEnabled(m_runs.size() == 1);
    connect(m_recent, &QMenu::aboutToShow, this, &FileMenu::fillRecent);
    m_window.setAcceptDrops(true);
    m_window.installEventFilter(this);
}

void FileMenu::fillRecent() {
    m_recent->clear();
    for (const QString& run : recentFiles()) {
        if (m_runs.contains(run)) continue;
        QAction* action = m_recent->addAction(QString(run).replace('&', "&&"), this, [this, run] { open({run}); });
        action->setEnabled(QFileInfo::exists(run));
    }
    if (m_recent->isEmpty()) m_recent->addAction("none yet")->setEnabled(false);
}

void FileMenu::open(const QStringList& runs) {
    openInOwnWindow(&m_window, runs);
}

// One file, or two that are then compared.
bool FileMenu::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::DragEnter && event->type() != QEvent::Drop)
        return QObject::eventFilter(watched, event);
    auto& drop = static_cast<QDropEvent&>(*event);  // of which one that enters is a kind
    const QStringList files = filesOf(*drop.mimeData());
    if (files.isEmpty() || files.size() > kMostAtOnce) return false;
    drop.acceptProposedAction();
    if (event->type() == QEvent::Drop) open(files);
    return true;
}

}  // namespace rankscope::gui
