// SPDX-License-Identifier: Apache-2.0
#include "gui/view/name_stamps.h"

#include <QFontMetricsF>
#include <QGuiApplication>
#include <QImage>
#include <QPainter>
#include <QTextLayout>
#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr int kPixelSize = 11;
constexpr int kMaxWidth = 4000;  // device pixels; no name is shown wider
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr size_t kLeastCharacters = 3;

QFont nameFont() {
    QFont font = QGuiApplication::font();
    font.setPixelSize(kPixelSize);
    return font;
}

// Where a cursor may stand behind a character, in logical pixels; ascending, whatever the direction of the text.
std::vector<double> cursorPlaces(const QTextLayout& layout, const QTextLine& line) {
    std::vector<double> places;
    for (int position = 0;;) {
        const int next = layout.nextCursorPosition(position);
        if (next <= position) break;
        position = next;
        places.push_back(line.cursorToX(position));
    }
    std::sort(places.begin(), places.end());
    return places;
}

}  // namespace

NameStamp::NameStamp(const QString& name, double ratio) {
    QTextLayout layout(name, nameFont());
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    layout.setTextOption(option);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    if (line.isValid()) line.setPosition({0, 0});
    layout.endLayout();
    if (!line.isValid()) return;

    const int width = std::min(kMaxWidth, static_cast<int>(std::ceil(line.naturalTextWidth() * ratio)) + 1),
              height = static_cast<int>(std::ceil(line.height() * ratio));
    for (const double place : cursorPlaces(layout, line))
        m_ends.push_back(static_cast<uint16_t>(std::clamp(static_cast<int>(std::ceil(place * ratio)), 0, width)));
    QImage ink(std::max(1, width), std::max(1, height), QImage::Format_ARGB32_Premultiplied);
    ink.setDevicePixelRatio(ratio);
    ink.fill(Qt::transparent);
    QPainter painter(&ink);
    painter.setPen(Qt::black);
    layout.draw(&painter, {0, 0});
    painter.end();

    for (int y = 0; y < ink.height(); ++y) {
        m_rows.push_back(static_cast<uint32_t>(m_dots.size()));
        const auto* pixels = reinterpret_cast<const QRgb*>(ink.constScanLine(y));
        for (int x = 0; x < ink.width(); ++x)
            if (qAlpha(pixels[x]) > 0)
                m_dots.push_back({static_cast<uint16_t>(x), static_cast<uint8_t>(qAlpha(pixels[x]))});
    }
    m_rows.push_back(static_cast<uint32_t>(m_dots.size()));
    m_dots.shrink_to_fit();
}

int NameStamp::fitting(int available, const NameStamp& ellipsis) const noexcept {
    if (m_dots.empty()) return 0;
    if (width() <= available) return width();
    const auto cut = std::upper_bound(m_ends.begin(), m_ends.end(), available - ellipsis.width());
    return static_cast<size_t>(cut - m_ends.begin()) < kLeastCharacters ? 0 : *(cut - 1);
}

void NameStamps::prepare(double ratio) {
    if (ratio == m_ratio && m_bytes < kMaxBytes) return;
    clear();
    m_ratio = ratio;
    m_ellipsis = NameStamp(QString(QChar(0x2026)), ratio);
}

void NameStamps::clear() {
    m_stamps.clear();
    m_bytes = 0;
}

const NameStamp* NameStamps::find(uint64_t key) const {
    const auto found = m_stamps.find(key);
    return found == m_stamps.end() ? nullptr : &found->second;
}

const NameStamp& NameStamps::add(uint64_t key, const QString& name) {
    const NameStamp& stamp = m_stamps[key] = NameStamp(name, m_ratio);
    m_bytes += stamp.bytes() + sizeof(NameStamp);
    return stamp;
}

}  // namespace rankscope::gui
