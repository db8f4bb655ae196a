// SPDX-License-Identifier: Apache-2.0
// rankscope-view: the window behind `rankscope view`, which finds the run and passes its own options on.
#include <QApplication>
#include <QIcon>
#include <QPixmap>
#include <QTimer>
#include <cstdio>
#include <cstdlib>

#include "analyzer/text/plain_text.h"
#include "gui/shell/command_line.h"
#include "gui/shell/main_window.h"
#include "gui/shell/run_chooser.h"
#include "gui/shell/view_export.h"

namespace {

using namespace rankscope::gui;

constexpr int kExitUsage = 2, kExitInput = 3;

// Names of files and findings are others', and a terminal obeys what is in them.
void say(const char* what, const QString& message) {
    std::fprintf(stderr, "rankscope: %s%s\n", what, rankscope::text::plainText(message.toStdString()).c_str());
}

int fail(int code, const QString& message) {
    say("error: ", message);
    return code;
}

// Qt's remarks on the platform it runs on are not the user's business; what ends the program is.
void onlySerious(QtMsgType type, const QMessageLogContext&, const QString& message) {
    if (type == QtCriticalMsg || type == QtFatalMsg) say("", message);
}

// The window as asked for. One that cannot be made so small is drawn as small as it can be, and scaled down.
QString savePicture(MainWindow& window, const ViewRequest& request) {
    const QString file = QString::fromStdString(request.screenshot);
    if (window.size() == request.size() || file.endsWith(".svg", Qt::CaseInsensitive)) return saveWindow(window, file);
    const QPixmap picture = window.grab()
                                .scaled(request.size(), Qt::KeepAspectRatioByExpanding, Qt::SmoothTransformation)
                                .copy(QRect(QPoint(), request.size()));
    return savePixels(picture, file);
}

QString writeExport(MainWindow& window, const ViewRequest& request) {
    const QString file = QString::fromStdString(request.exported);
    if (file.endsWith(".csv", Qt::CaseInsensitive)) return saveEvents(eventsInView(window.panes()), file);
    return saveTimelines(window, file);
}

// Files asked for; what went wrong with the first that could not be written.
QString writeFiles(MainWindow& window, const ViewRequest& request) {
    QString wrong;
    if (!request.screenshot.empty()) wrong = savePicture(window, request);
    if (wrong.isEmpty() && !request.exported.empty()) wrong = writeExport(window, request);
    return wrong;
}

// True when a window can be made: Qt would abort without a display.
bool hasDisplay() {
    if (const char* platform = std::getenv("QT_QPA_PLATFORM"); platform && *platform) return true;
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"})
        if (const char* value = std::getenv(name); value && *value) return true;
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    bool headless = false;
    for (int i = 1; i < argc; ++i)
        for (const char* option : {"--screenshot", "--export"})
            headless = headless || QString::fromLocal8Bit(argv[i]).startsWith(option);
    if (headless) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
    } else if (!hasDisplay()) {
        return fail(
            kExitInput,
            "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set): `rankscope view NAME --screenshot "
            "FILE.png` draws a picture without one, `rankscope analyze NAME --format html -o FILE.html` writes a page "
            "for any browser, `rankscope export NAME --to perfetto -o FILE.json` a trace for ui.perfetto.dev");
    }
    qInstallMessageHandler(onlySerious);
    QApplication application(argc, argv);
    QApplication::setApplicationName("rankscope");
    QApplication::setOrganizationName("rankscope");
    QApplication::setDesktopFileName("rankscope");
    QApplication::setWindowIcon(QIcon(":/rankscope.svg"));
    CommandLine commandLine;
    if (const QString wrong = commandLine.read(QApplication::arguments()); !wrong.isEmpty())
        return fail(kExitUsage, wrong);
    if (commandLine.wantsHelp())
        return std::fputs(commandLine.helpText().toUtf8().constData(), stdout) < 0 ? kExitInput : 0;
    const ViewRequest& request = commandLine.request();
    if (request.runs.empty()) return chooseRun();

    MainWindow window(request);
    int status = 0;
    QObject::connect(&window, &MainWindow::failed, &window, [&](const QString& message) {
        status = fail(kExitInput, message);
        QApplication::exit(status);
    });
    if (!request.isHeadless()) {
        window.show();
    } else {
        // Nobody looks at the window's status bar: a file that lacks something of the run is not written.
        QObject::connect(&window, &MainWindow::damaged, &window,
                         [&](const QString& message) { status = fail(kExitInput, message); });
        QObject::connect(&window, &MainWindow::waiting, &window,
                         [waited = QStringList()](const QString& message) mutable {
                             if (waited.contains(message)) return;  // once for each file
                             waited << message;
                             say("", message);
                         });
        QObject::connect(&window, &MainWindow::ready, &window, [&] {
            if (status != 0) {
                fail(status, "nothing is written: not all of the run can be shown");
            } else if (const QString wrong = writeFiles(window, request); !wrong.isEmpty()) {
                status = fail(kExitInput, wrong);
            }
            QApplication::exit(status);
        });
        window.setAttribute(Qt::WA_DontShowOnScreen);
        window.show();
    }
    return application.exec();
}
