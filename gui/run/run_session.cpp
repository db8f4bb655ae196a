// SPDX-License-Identifier: Apache-2.0
#include "gui/run/run_session.h"

#include <algorithm>

#include "gui/session/activity_lines.h"
#include "gui/session/column_text.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr std::chrono::milliseconds kMsBeforeSaid{500};  // a writer's short transactions are nobody's business

}  // namespace

RunSession::RunSession(TimelineModel& model, QObject* parent) : QObject(parent), m_model(model) {
    m_progress.setInterval(100);
    connect(&m_progress, &QTimer::timeout, this, [this] {
        if (m_loader) emit progressed(m_loader->progress());
    });
}

RunSession::~RunSession() {
    m_leaving = true;
    if (m_opening.joinable()) m_opening.join();
}

void RunSession::open(const std::string& run, std::optional<std::chrono::seconds> patience) {
    m_loading = true;
    m_opening = std::thread([this, run, patience] {
        try {
            store::TraceReader reader(
                run, [&](std::chrono::milliseconds waited) { return whenLocked(run, patience, waited); },
                store::MisplacedRows::kept);
            auto info = std::make_shared<const RunInfo>(readRunInfo(reader));
            const auto lines = std::make_shared<std::map<int32_t, ActivityBins>>(readActivityLines(reader));
            QMetaObject::invokeMethod(
                this, [this, info, lines] { start(info, std::move(*lines)); }, Qt::QueuedConnection);
        } catch (const std::exception& error) {
            QMetaObject::invokeMethod(
                this,
                [this, message = QString::fromUtf8(error.what())] {
                    m_loading = false;
                    emit failed(message);
                },
                Qt::QueuedConnection);
        }
    });
}

// On the opening thread.
bool RunSession::whenLocked(const std::string& file, std::optional<std::chrono::seconds> patience,
                            std::chrono::milliseconds waited) {
    if (m_leaving || (patience && waited >= *patience)) return false;
    const int64_t seconds = std::chrono::floor<std::chrono::seconds>(waited).count();
    if (waited < kMsBeforeSaid || seconds == m_secondsWaited) return true;
    m_secondsWaited = seconds;
    QString message = QString("%1 is locked by another program, which writes to it: waiting for it to end")
                          .arg(QString::fromStdString(displayText(file)));
    if (patience) message += QString(", at most %1 s").arg(patience->count());
    QMetaObject::invokeMethod(
        this, [this, message] { emit waiting(message); }, Qt::QueuedConnection);
    return true;
}

void RunSession::start(std::shared_ptr<const RunInfo> run, std::map<int32_t, ActivityBins> lines) {
    m_opening.join();
    m_queries = std::make_unique<QueryThread>(run->file);  // before the model speaks of the run: its listeners ask
    m_model.setRun(run, std::move(lines));
    connect(m_queries.get(), &QueryThread::failed, this, &RunSession::report);
    emit opened();
    reportDamage();
    // The loader's threads end with it, before this object does; queued calls to a gone receiver are dropped.
    RunLoader::Callbacks callbacks;
    callbacks.rankLoaded = [this](RankTracksPtr tracks) {
        QMetaObject::invokeMethod(
            this, [this, tracks = std::move(tracks)] { m_model.addTracks(tracks); }, Qt::QueuedConnection);
    };
    callbacks.failed = [this](int32_t rank, std::string reason, std::string hint) {
        QMetaObject::invokeMethod(
            this,
            [this, rank, reason = std::move(reason), hint = std::move(hint)] {
                m_model.setTrouble(rank, reason);
                m_troubles[{reason, hint}].push_back(rank);
            },
            Qt::QueuedConnection);
    };
    callbacks.finished = [this](bool cancelled) {
        QMetaObject::invokeMethod(
            this, [this, cancelled] { loadingEnded(cancelled); }, Qt::QueuedConnection);
    };
    m_loader = std::make_unique<RunLoader>(std::move(run), std::move(callbacks));
    m_progress.start();
}

void RunSession::loadingEnded(bool cancelled) {
    m_loading = false;
    m_progress.stop();
    for (const OutlineRank& rank : m_model.run()->outline.ranks)
        if (cancelled && !m_model.lanes().tracks(rank.rank) && m_model.lanes().trouble(rank.rank).empty())
            m_model.setTrouble(rank.rank, "not loaded: cancelled");
    // Once for all ranks with the same trouble.
    const QString file = QString::fromStdString(displayText(m_model.run()->file));
    for (auto& [trouble, ranks] : m_troubles) {
        std::sort(ranks.begin(), ranks.end());
        const QString hint =
            trouble.second.empty() ? QString() : QString(" (%1)").arg(QString::fromStdString(trouble.second));
        report(QString("%1: %2 %3: %4%5")
                   .arg(file, ranks.size() == 1 ? "rank" : "ranks", QString::fromStdString(ranksText(ranks)),
                        QString::fromStdString(displayText(trouble.first)), hint));
    }
    emit progressed(m_loader->progress());
    emit loaded(cancelled);
}

void RunSession::reportDamage() {
    QStringList damage;
    for (const std::string& each : m_model.run()->damage) damage << QString::fromStdString(displayText(each));
    if (damage.isEmpty()) return;
    report(QString("%1: damaged: %2 (make it again with `rankscope collect` or `rankscope import`)")
               .arg(QString::fromStdString(displayText(m_model.run()->file)), damage.join("; ")));
}

void RunSession::report(const QString& message) {
    if (m_model.problems().contains(message)) return;
    m_model.addProblem(message);
    emit damaged(message);
}

void RunSession::cancel() {
    if (m_loader) m_loader->cancel();
}

void RunSession::prefer(const std::vector<int32_t>& ranks) {
    if (m_loader) m_loader->prefer(ranks);
}

}  // namespace rankscope::gui
