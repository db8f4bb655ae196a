// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/run_session.h"

namespace rankscope::gui {

RunSession::RunSession(TimelineModel& model, QObject* parent) : QObject(parent), m_model(model) {
    m_progress.setInterval(100);
    connect(&m_progress, &QTimer::timeout, this, [this] {
        if (m_loader) emit progressed(m_loader->progress());
    });
}

RunSession::~RunSession() {
    if (m_opening.joinable()) m_opening.join();
}

void RunSession::open(const std::string& run) {
    m_loading = true;
    m_opening = std::thread([this, run] {
        try {
            store::TraceReader reader(run);
            auto info = std::make_shared<const RunInfo>(readRunInfo(reader));
            QMetaObject::invokeMethod(this, [this, info] { start(info); }, Qt::QueuedConnection);
        } catch (const std::exception& error) {
            QMetaObject::invokeMethod(this, [this, message = QString::fromUtf8(error.what())] {
                m_loading = false;
                emit failed(message);
            }, Qt::QueuedConnection);
        }
    });
}

void RunSession::start(std::shared_ptr<const RunInfo> run) {
    m_opening.join();
    m_queries = std::make_unique<QueryThread>(run->file);   // before the model speaks of the run: its listeners ask
    m_model.setRun(run);
    connect(m_queries.get(), &QueryThread::failed, this, &RunSession::damaged);
    emit opened();
    // The loader's threads end with it, before this object does; queued calls to a gone receiver are dropped.
    RunLoader::Callbacks callbacks;
    callbacks.rankLoaded = [this](RankTracksPtr tracks) {
        QMetaObject::invokeMethod(this, [this, tracks = std::move(tracks)] { m_model.addTracks(tracks); }, Qt::QueuedConnection);
    };
    callbacks.failed = [this](std::string message) {
        QMetaObject::invokeMethod(this, [this, message = QString::fromStdString(message)] { emit damaged(message); }, Qt::QueuedConnection);
    };
    callbacks.finished = [this](bool cancelled) {
        QMetaObject::invokeMethod(this, [this, cancelled] {
            m_loading = false;
            m_progress.stop();
            emit progressed(m_loader->progress());
            emit loaded(cancelled);
        }, Qt::QueuedConnection);
    };
    m_loader = std::make_unique<RunLoader>(std::move(run), std::move(callbacks));
    m_progress.start();
}

void RunSession::cancel() {
    if (m_loader) m_loader->cancel();
}

void RunSession::prefer(const std::vector<int32_t>& ranks) {
    if (m_loader) m_loader->prefer(ranks);
}

}  // namespace rankscope::gui
