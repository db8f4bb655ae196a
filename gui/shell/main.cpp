// SPDX-License-Identifier: Apache-2.0
// rankscope-view: the window behind `rankscope view`, which finds the run and passes its own options on.
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>
#include <QPixmap>
#include <QTimer>
#include <cstdio>
#include <cstdlib>

#include "gui/shell/main_window.h"
#include "gui/shell/run_chooser.h"
#include "gui/shell/view_export.h"

namespace {

using namespace rankscope::gui;

constexpr int kExitUsage = 2, kExitInput = 3;

bool parseSize(const QString& text, QSize& size) {
    const QStringList parts = text.split('x');
    bool okWidth = false, okHeight = false;
    if (parts.size() == 2) size = QSize(parts[0].toInt(&okWidth), parts[1].toInt(&okHeight));
    return okWidth && okHeight && size.width() >= 320 && size.height() >= 240 && size.width() <= 16384 && size.height() <= 16384;
}

int fail(int code, const QString& message) {
    std::fprintf(stderr, "rankscope: error: %s\n", message.toUtf8().constData());
    return code;
}

// Qt's remarks on the platform it runs on are not the user's business; what ends the program is.
void onlySerious(QtMsgType type, const QMessageLogContext&, const QString& message) {
    if (type == QtCriticalMsg || type == QtFatalMsg) std::fprintf(stderr, "rankscope: %s\n", message.toUtf8().constData());
}

// The window as asked for. One that cannot be made so small is drawn as small as it can be, and scaled down.
QString savePicture(MainWindow& window, const ViewRequest& request) {
    const QString file = QString::fromStdString(request.screenshot);
    if (window.size() == request.size() || file.endsWith(".svg", Qt::CaseInsensitive)) return saveWindow(window, file);
    const QPixmap picture = window.grab().scaled(request.size(), Qt::KeepAspectRatioByExpanding, Qt::SmoothTransformation).copy(QRect(QPoint(), request.size()));
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
        for (const char* option : {"--screenshot", "--export"}) headless = headless || QString::fromLocal8Bit(argv[i]).startsWith(option);
    if (headless) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
    } else if (!hasDisplay()) {
        return fail(kExitInput, "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set): `rankscope view NAME --screenshot FILE.png` draws a picture without "
                                "one, `rankscope analyze NAME --format html -o FILE.html` writes a page for any browser, `rankscope export NAME --to perfetto -o FILE.json` "
                                "a trace for ui.perfetto.dev");
    }
    qInstallMessageHandler(onlySerious);
    QApplication application(argc, argv);
    QApplication::setApplicationName("rankscope");
    QApplication::setOrganizationName("rankscope");
    QApplication::setDesktopFileName("rankscope");
    QApplication::setWindowIcon(QIcon(":/rankscope.svg"));
    QCommandLineParser parser;
    parser.addHelpOption();
    parser.addPositionalArgument("RUN", "Run name, run directory or .db file");
    const QCommandLineOption goTo("goto", "Finding to go to, for example RS301", "ID"), shot("screenshot", "Write a picture of the window (.png, .svg) and end", "FILE"),
        exported("export", "Write what the timeline shows (.csv of its events, .svg, .png) and end", "FILE"),
        panel("panel", "Panel to open: " + MainWindow::panelNames().join(", "), "NAME"), sizeOption("size", "Size of the window or picture", "WxH", "1600x900"), dark("dark", "Dark colours");
    parser.addOptions({goTo, shot, exported, panel, sizeOption, dark});
    parser.process(application);

    ViewRequest request;
    for (const QString& run : parser.positionalArguments()) request.runs.push_back(run.toStdString());
    if (request.runs.empty() && !headless) return chooseRun();
    if (request.runs.empty() || request.runs.size() > 2) return fail(kExitUsage, "one run is to be named, or two to compare");
    QSize size;
    if (!parseSize(parser.value(sizeOption), size)) return fail(kExitUsage, "--size takes WIDTHxHEIGHT in pixels, 320x240 to 16384x16384");
    if (parser.isSet(sizeOption)) request.givenSize = size;
    request.goTo = parser.value(goTo).toStdString();
    request.screenshot = parser.value(shot).toStdString();
    request.exported = parser.value(exported).toStdString();
    request.panel = parser.value(panel).toStdString();
    if (!request.panel.empty() && !MainWindow::panelNames().contains(parser.value(panel)))
        return fail(kExitUsage, "there is no panel " + parser.value(panel) + "; there are " + MainWindow::panelNames().join(", "));
    request.dark = parser.isSet(dark);

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
        QObject::connect(&window, &MainWindow::damaged, &window, [&](const QString& message) { status = fail(kExitInput, message); });
        QObject::connect(&window, &MainWindow::ready, &window, [&] {
            if (status != 0) {
                fail(status, "nothing is written: not all of the run can be shown");
            } else if (const QString wrong = writeFiles(window, request); !wrong.isEmpty()) status = fail(kExitInput, wrong);
            QApplication::exit(status);
        });
        window.setAttribute(Qt::WA_DontShowOnScreen);
        window.show();
    }
    return application.exec();
}
