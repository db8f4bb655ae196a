// SPDX-License-Identifier: Apache-2.0
#include "gui/view/window_colours.h"

#include <QApplication>
#include <QPalette>
#include <QStyle>
#include <QStyleFactory>

#include "gui/view/palette.h"

namespace rankscope::gui {
namespace {

QPalette darkPalette() {
    const Palette& ours = Palette::dark();
    QPalette palette;
    const QColor text = colour(ours.text), dim = colour(ours.dimText), window = colour(ours.header),
                 base = colour(ours.background);
    palette.setColor(QPalette::Window, window);
    palette.setColor(QPalette::Base, base);
    palette.setColor(QPalette::AlternateBase, colour(ours.alternate).lighter(115));
    palette.setColor(QPalette::Button, window.lighter(115));
    palette.setColor(QPalette::ToolTipBase, window.lighter(125));
    for (const auto role :
         {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText, QPalette::BrightText})
        palette.setColor(role, text);
    palette.setColor(QPalette::PlaceholderText, dim);
    palette.setColor(QPalette::Link, QColor(0x56, 0xb4, 0xe9));
    palette.setColor(QPalette::LinkVisited, QColor(0xcc, 0x79, 0xa7));
    palette.setColor(QPalette::Highlight, QColor(0x2f, 0x6f, 0xa8));
    palette.setColor(QPalette::HighlightedText, Qt::white);
    palette.setColor(QPalette::Light, window.lighter(150));
    palette.setColor(QPalette::Midlight, window.lighter(125));
    palette.setColor(QPalette::Mid, window.darker(120));
    palette.setColor(QPalette::Dark, window.darker(150));
    palette.setColor(QPalette::Shadow, Qt::black);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, dim.darker(115));
    return palette;
}

}  // namespace

void applyWindowColours(bool dark) {
    static const QPalette chosenByDesktop = QApplication::palette();
    static const QString desktopStyle = QApplication::style()->name();
    // Styles of desktops may paint with their theme's colours whatever the palette says; Fusion follows it.
    QApplication::setStyle(QStyleFactory::create(dark ? "Fusion" : desktopStyle));
    QApplication::setPalette(dark ? darkPalette() : chosenByDesktop);
}

}  // namespace rankscope::gui
