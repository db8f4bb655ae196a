// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/view_export.h"

#include <QBuffer>
#include <QPainter>
#include <QPixmap>
#include <QSvgGenerator>
#include <functional>

#include "analyzer/text/output_file.h"

namespace rankscope::gui {
namespace {

QString cannotWrite(const QString& file, const QString& why) {
    return QString("%1 cannot be written: %2").arg(file, why);
}

// In one piece or not at all.
QString saveFile(const QString& file, const std::function<void(std::ostream&)>& write) {
    try {
        text::OutputFile out(file.toStdString());
        write(out.stream());
        out.commit();
        return {};
    } catch (const std::filesystem::filesystem_error& error) {
        return cannotWrite(file, QString::fromStdString(error.code().message()));
    }
}

QString saveBytes(const QByteArray& bytes, const QString& file) {
    return saveFile(file, [&](std::ostream& out) { out.write(bytes.constData(), bytes.size()); });
}

bool isSvg(const QString& file) {
    return file.endsWith(".svg", Qt::CaseInsensitive);
}

// Texts of panels would leave their frames: the format has no clipping that Qt writes. So panels are pixels; the
// timelines, which keep to their place, are shapes.
QString saveShapes(QMainWindow& window, const QString& file, bool withPanels) {
    QWidget& timelines = *window.centralWidget();
    const QRect page = withPanels ? window.rect() : timelines.rect();
    const QPoint corner = withPanels ? timelines.mapTo(&window, QPoint()) : QPoint();
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer);
    svg.setSize(page.size());
    svg.setViewBox(page);
    svg.setTitle(window.windowTitle());
    svg.setDescription("rankscope view");
    QPainter painter(&svg);
    painter.fillRect(page, window.palette().window());
    if (withPanels) painter.drawPixmap(QPoint(), window.grab());
    painter.translate(corner);
    painter.fillRect(timelines.rect(), window.palette().window());
    painter.translate(-corner);
    timelines.render(&painter, corner, QRegion(), QWidget::DrawChildren);
    painter.end();
    return saveBytes(bytes, file);
}

}  // namespace

QString savePixels(const QPixmap& picture, const QString& file) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    const QByteArray format = file.section('.', -1).toLatin1();
    if (!file.contains('.') || !picture.save(&buffer, format.constData()))
        return cannotWrite(file, "pictures are .png, .svg, .jpg or .bmp, tables .csv");
    return saveBytes(bytes, file);
}

QString saveWindow(QMainWindow& window, const QString& file) {
    return isSvg(file) ? saveShapes(window, file, true) : savePixels(window.grab(), file);
}

QString saveTimelines(QMainWindow& window, const QString& file) {
    return isSvg(file) ? saveShapes(window, file, false) : savePixels(window.centralWidget()->grab(), file);
}

std::vector<CsvPart> eventsInView(const std::vector<RunPane*>& panes) {
    std::vector<CsvPart> parts;
    for (RunPane* pane : panes) {
        TimelineModel& model = pane->model();
        if (!model.run()) continue;
        CsvPart part{model.sharedRun(), {}, {model.axis().visible(), {}, model.lanes().choices().hiddenLanes, {}}};
        for (const std::vector<Row>* rows : {&model.lanes().rows(), &model.lanes().pinnedRows()})
            for (const Row& row : *rows)
                if (row.kind == RowKind::summary) part.scope.ranks.insert(row.rank);
        for (const auto& [rank, tracks] : model.lanes().loaded()) part.tracks.push_back(tracks);
        part.scope.run = pane->letter().toStdString();
        parts.push_back(std::move(part));
    }
    return parts;
}

QString saveEvents(const std::vector<CsvPart>& parts, const QString& file) {
    return saveFile(file, [&](std::ostream& out) {
        out << csvHeader(!parts.empty() && !parts.front().scope.run.empty());
        for (const CsvPart& part : parts) writeEventsCsv(out, *part.run, part.tracks, part.scope);
    });
}

}  // namespace rankscope::gui
