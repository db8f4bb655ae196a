// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/run_chooser.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QFileDialog>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rankscope::gui {

int chooseRun() {
    const QString file = QFileDialog::getOpenFileName(nullptr, "Open a run", {}, "Runs (trace.db *.db)");
    if (file.isEmpty()) return 0;
    // The tool and not this program: it analyses a run whose findings are missing.
    const QByteArray tool = (QCoreApplication::applicationDirPath() + "/../../bin/rankscope").toLocal8Bit(),
                     run = file.toLocal8Bit();
    ::execl(tool.constData(), "rankscope", "view", run.constData(), static_cast<char*>(nullptr));
    std::fprintf(stderr, "rankscope: error: %s could not be started: %s\n", tool.constData(), std::strerror(errno));
    return 4;
}

}  // namespace rankscope::gui
