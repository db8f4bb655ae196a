// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/run_chooser.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QFileDialog>
#include <QMessageBox>
#include <QPointer>
#include <QProcess>
#include <QTemporaryFile>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gui/timeline/display_text.h"

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

void openInOwnWindow(QWidget* parent, const QStringList& runs) {
    // Owned by nobody: the end of a QProcess would end the window that it has opened, which is to outlive this one.
    auto* process = new QProcess;
    auto said = std::make_shared<QTemporaryFile>();
    if (said->open()) process->setStandardErrorFile(said->fileName());
    process->setStandardInputFile(QProcess::nullDevice());
    process->setStandardOutputFile(QProcess::nullDevice());
    const auto fail = [parent = QPointer<QWidget>(parent), runs](const QString& reason) {
        if (parent) QMessageBox::warning(parent, "Open", runs.join(" and ") + "\n\n" + reason);
    };
    QObject::connect(process, &QProcess::finished, process, [=](int status, QProcess::ExitStatus how) {
        constexpr qint64 kMostBytes = 4000;  // what is read in a box
        if (how == QProcess::CrashExit || status != 0) {
            const std::string text = said->read(kMostBytes).toStdString();
            fail(text.empty() ? QString("rankscope view ended with status %1").arg(status)
                              : QString::fromStdString(displayText(text, kMostBytes)));
        }
        process->deleteLater();
    });
    QObject::connect(process, &QProcess::errorOccurred, process, [=](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;  // finished() follows
        fail(process->program() + ": " + process->errorString());
        process->deleteLater();
    });
    process->start(tool(), QStringList{"view"} + runs);
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
