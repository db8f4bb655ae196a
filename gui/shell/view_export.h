// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMainWindow>
#include <vector>

#include "gui/pane/run_pane.h"
#include "gui/session/event_csv.h"

namespace rankscope::gui {

/// The whole window: .svg, or a picture of pixels in the format the file's ending names. Returns what went wrong; empty
/// when nothing did.
QString saveWindow(QMainWindow& window, const QString& file);
QString savePixels(const QPixmap& picture, const QString& file);
/// The timelines alone, as above.
QString saveTimelines(QMainWindow& window, const QString& file);

/// Events to write, read off the GUI thread: everything in it is shared and does not change.
struct CsvPart {
    std::shared_ptr<const RunInfo> run;
    std::vector<RankTracksPtr> tracks;
    CsvScope scope;
};
/// What the panes show: ranks and lanes that are not hidden or filtered away, in the time in view.
std::vector<CsvPart> eventsInView(const std::vector<RunPane*>& panes);
/// May run on any thread. Returns what went wrong; empty when nothing did.
QString saveEvents(const std::vector<CsvPart>& parts, const QString& file);

}  // namespace rankscope::gui
