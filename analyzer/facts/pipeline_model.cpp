// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/pipeline_model.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "analyzer/facts/statistics.h"

namespace rankscope::facts {
namespace {

struct Action {
    bool forward = true;
    int micro = 0;
    int chunk = 0;
};

/// Lists the actions of interleaved 1F1B (arXiv:2104.04473): groups of P micro-batches go through one virtual stage
/// after the other.
std::vector<Action> interleaved(int stages, int stage, int micros, int chunks) {
    const int total = micros * chunks;
    const int group = stages * chunks;
    const int ahead = std::min(total, (stages - stage - 1) * 2 + (chunks - 1) * stages);
    const auto action = [&](int k, bool forward) {
        // The last group may hold fewer micro-batches than there are stages.
        const int first = k / group * stages;
        const int members = std::min(stages, micros - first);
        const int within = k - first * chunks;
        const int chunk = within / members;
        return Action{forward, first + within % members, forward ? chunk : chunks - 1 - chunk};
    };
    std::vector<Action> actions;
    for (int k = 0; k < ahead; ++k) actions.push_back(action(k, true));
    for (int k = 0; k < total; ++k) {
        if (ahead + k < total) actions.push_back(action(ahead + k, true));
        actions.push_back(action(k, false));
    }
    return actions;
}

std::vector<Action> plain(int stages, int stage, int micros, bool gpipe) {
    const int ahead = gpipe ? micros : std::min(micros, stages - stage);
    std::vector<Action> actions;
    for (int m = 0; m < ahead; ++m) actions.push_back({true, m});
    for (int m = 0; m < micros; ++m) {
        actions.push_back({false, m});
        if (ahead + m < micros) actions.push_back({true, ahead + m});
    }
    return actions;
}

/// Plays the stages' lists; an action waits for the place in front of it (forward) or behind it (backward), places
/// counted over all virtual stages.
class Player {
  public:
    explicit Player(const PipelineModel& model)
        : m_model(model),
          m_stages(static_cast<int>(model.stageNs.size())),
          m_chunks(model.schedule == "interleaved" ? std::max(1, model.virtualStages) : 1),
          m_done(static_cast<size_t>(2 * m_stages * m_chunks * model.microBatches), -1) {}

    double play() {
        std::vector<std::vector<Action>> lists;
        for (int s = 0; s < m_stages; ++s)
            lists.push_back(m_chunks > 1 ? interleaved(m_stages, s, m_model.microBatches, m_chunks)
                                         : plain(m_stages, s, m_model.microBatches, m_model.schedule == "gpipe"));
        std::vector<size_t> next(lists.size(), 0);
        std::vector<double> now(lists.size(), 0);
        std::deque<int> awake(lists.size());
        std::iota(awake.begin(), awake.end(), 0);
        while (!awake.empty()) {
            const int stage = awake.front();
            const auto s = static_cast<size_t>(stage);
            awake.pop_front();
            bool moved = false;
            while (next[s] < lists[s].size() && run(stage, lists[s][next[s]], now[s])) {
                ++next[s];
                moved = true;
            }
            if (!moved) continue;
            awake.push_back((stage + 1) % m_stages);
            awake.push_back((stage + m_stages - 1) % m_stages);
        }
        return *std::ranges::max_element(now);
    }

  private:
    double& doneAt(bool forward, int place, int micro) {
        return m_done[static_cast<size_t>(((forward ? 0 : 1) * m_stages * m_chunks + place) * m_model.microBatches +
                                          micro)];
    }

    bool run(int stage, const Action& action, double& now) {
        const int place = action.chunk * m_stages + stage;
        const int from = action.forward ? place - 1 : place + 1;
        double ready = 0;
        if (from >= 0 && from < m_stages * m_chunks) {
            const double sent = doneAt(action.forward, from, action.micro);
            if (sent < 0) return false;
            ready = sent + m_model.transferNs;
        } else if (!action.forward) {
            ready = doneAt(true, place, action.micro);
            if (ready < 0) return false;
        }
        const double share = action.forward ? PipelineModel::kForwardShare : 1 - PipelineModel::kForwardShare;
        now = std::max(now, ready) + m_model.stageNs[static_cast<size_t>(stage)] * share / m_chunks;
        doneAt(action.forward, place, action.micro) = now;
        return true;
    }

    const PipelineModel& m_model;
    int m_stages;
    int m_chunks;
    std::vector<double> m_done;  // end of each (direction, place, micro-batch); -1 not yet
};

}  // namespace

double PipelineModel::makespanNs() const {
    if (stageNs.empty() || microBatches < 1) return 0;
    return Player(*this).play();
}

PipelineModel PipelineModel::balanced() const {
    PipelineModel model = *this;
    model.stageNs.assign(stageNs.size(), mean(stageNs));
    return model;
}

}  // namespace rankscope::facts
