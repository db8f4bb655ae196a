// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/run_chooser.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QFileDialog>
#include <QProcess>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rankscope::gui {
namespace {

// The tool and not this program: it analyses a run whose findings are missing.
QString tool() {
    return QCoreApplication::applicationDirPath() + "/../../bin/rankscope";
}

}  // namespace

QString askForRun(QWidget* parent, const QString& title) {
    return QFileDialog::getOpenFileName(parent, title, {}, "Runs (trace.db *.db)");
}

bool openInOwnWindow(const QStringList& runs) {
    return QProcess::startDetached(tool(), QStringList{"view"} + runs);
}

int chooseRun() {
    const QString file = askForRun(nullptr, "Open a run");
    if (file.isEmpty()) return 0;
    const QByteArray program = tool().toLocal8Bit(), run = file.toLocal8Bit();
    ::execl(program.constData(), "rankscope", "view", run.constData(), static_cast<char*>(nullptr));
    std::fprintf(stderr, "rankscope: error: %s could not be started: %s\n", program.constData(), std::strerror(errno));
    return 4;
}

}  // namespace rankscope::gui
