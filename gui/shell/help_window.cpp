// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/help_window.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QVBoxLayout>
#include <span>
#include <utility>

namespace rankscope::gui {
namespace {

using Help = std::pair<const char*, const char*>;

constexpr Help kMoving[]{{"W, S", "zoom in, out"},
                         {"A, D", "move left, right"},
                         {"Ctrl + wheel", "zoom at the pointer"},
                         {"wheel", "scroll the lanes; with Shift sideways"},
                         {"Shift + drag", "move"},
                         {"F", "fit the whole run"},
                         {"Z, double click", "zoom to the selection, to the event"},
                         {"N, Shift + N", "next step, previous step"},
                         {"G", "go to a time or step"},
                         {"Backspace", "back to the view before"}};
constexpr Help kChoosing[]{{"click", "select an event; on a label: open or close"},
                           {"drag", "select time, with its statistics"},
                           {"drag a rank's label", "move it among the ranks"},
                           {"drag the labels' border", "make their column wider"},
                           {"P", "keep the rank above the others"},
                           {"Esc", "clear the selection and a finding's marks"}};
constexpr Help kFinding[]{{"/", "search"},
                          {"F3, Shift + F3", "next, previous hit"},
                          {"[, ]", "to what caused the event, to what it causes"},
                          {"Ctrl + E", "export the view"},
                          {"?, F1", "this help"}};

QString rowsOf(const char* title, std::span<const Help> rows) {
    QString html = QString("<tr><td colspan='2' style='padding-top: 8px'><b>%1</b></td></tr>").arg(title);
    for (const auto& [keys, what] : rows)
        html += QString("<tr><td style='padding-right: 24px'>%1</td><td>%2</td></tr>")
                    .arg(QString(keys).toHtmlEscaped(), QString(what).toHtmlEscaped());
    return html;
}

}  // namespace

HelpWindow::HelpWindow(QWidget* parent) : QDialog(parent) {
    setWindowTitle("Keys and mouse");
    auto* text = new QLabel("<table>" + rowsOf("Moving", kMoving) + rowsOf("Choosing", kChoosing) +
                                rowsOf("Finding", kFinding) + "</table>",
                            this);
    text->setTextFormat(Qt::RichText);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(text);
    layout->addWidget(buttons);
}

}  // namespace rankscope::gui
