// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace rankscope::reference {
namespace {

using Type = PipelineAction::Type;

std::string textOf(const std::vector<PipelineAction>& actions) {
    std::string text;
    for (const PipelineAction& action : actions) {
        if (action.type == Type::forward) text += "F" + std::to_string(action.micro) + " ";
        if (action.type == Type::backward) text += "B" + std::to_string(action.micro) + " ";
    }
    return text;
}

TEST(Schedule, GpipeRunsAllForwardsFirst) {
    EXPECT_EQ(textOf(planPipeline(Schedule::gpipe, 2, 0, 3)), "F0 F1 F2 B0 B1 B2 ");
}

TEST(Schedule, OneForwardOneBackwardWarmsUpByTheStagesBehindIt) {
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 0, 6)), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 ");
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 3, 6)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 ");
}

TEST(Schedule, FewerMicroBatchesThanStagesStillRunEachOnce) {
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 0, 2)), "F0 F1 B0 B1 ");
}

TEST(Schedule, InterleavedStagesWalkTheChunksInGroupsOfStages) {
    const auto withChunks = [](const std::vector<PipelineAction>& actions) {
        std::string text;
        for (const PipelineAction& action : actions)
            if (action.type != Type::transfer)
                text += (action.type == Type::forward ? "F" : "B") + std::to_string(action.chunk) + "." +
                        std::to_string(action.micro) + " ";
        return text;
    };
    // Narayanan et al. 2021, figure 4: two chunks per stage. The last of two stages has two forward units in flight
    // before its first backward.
    EXPECT_EQ(withChunks(planPipeline(Schedule::interleaved, 2, 1, 4, 2)),
              "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3 ");
    EXPECT_EQ(withChunks(planPipeline(Schedule::interleaved, 2, 0, 2, 2)), "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1 ");
    // As many micro-batches as stages: the last stage does not wait until all of them went forward. Older versions of
    // Megatron-LM did; core 0.16 does not.
    EXPECT_EQ(withChunks(planPipeline(Schedule::interleaved, 2, 1, 2, 2)), "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1 ");
}

/// All stages against each other, with NCCL's rules: the k-th send from a to b meets the k-th receive at b from a; a
/// group is over when all of its messages are.
class Rehearsal {
  public:
    Rehearsal(Schedule schedule, int stages, int microBatches, int chunks) : m_stages(stages), m_chunks(chunks) {
        for (int stage = 0; stage < stages; ++stage)
            m_plans.push_back(planPipeline(schedule, stages, stage, microBatches, chunks));
        m_next.assign(stages, 0);
        m_open.assign(stages, 0);
        m_posted.assign(stages, false);
    }

    void expectEverythingMeets() {
        for (bool progress = true; progress;) {
            progress = false;
            for (int stage = 0; stage < m_stages; ++stage) progress = advance(stage) || progress;
        }
        for (int stage = 0; stage < m_stages; ++stage)
            EXPECT_EQ(m_next[stage], m_plans[stage].size()) << "stage " << stage << " waits for ever";
    }

  private:
    /// Which boundary of the model, in which direction, for which micro-batch.
    using Label = std::tuple<bool, int, int>;
    struct Half {
        Label label;
        int stage;
    };

    int part(int chunk, int stage) const { return chunk * m_stages + stage; }
    Label labelOf(const PipelineMessage& message, int stage) const {
        const bool gradient = message.what == PipelineMessage::What::gradient;
        const bool enters = gradient ? message.send : !message.send;  // at the chunk's first layer
        return {gradient, part(message.chunk, stage) - (enters ? 1 : 0), message.micro};
    }

    bool advance(int stage) {
        if (m_next[stage] == m_plans[stage].size()) return false;
        const PipelineAction& action = m_plans[stage][m_next[stage]];
        if (action.type == Type::transfer) return exchange(stage, action);
        const bool forward = action.type == Type::forward;
        const int at = part(action.chunk, stage);
        const bool given = forward ? at == 0 : at + 1 == m_stages * m_chunks;
        const Label needed{!forward, forward ? at - 1 : at, action.micro};
        EXPECT_TRUE(given || m_arrived[stage].count(needed))
            << "stage " << stage << " computes what it has not received";
        EXPECT_TRUE(forward || m_computed.count({true, at, action.micro})) << "backward before forward";
        EXPECT_TRUE(m_computed.insert({forward, at, action.micro}).second) << "computed twice";
        ++m_next[stage];
        return true;
    }

    bool exchange(int stage, const PipelineAction& action) {
        if (!m_posted[stage]) {
            m_posted[stage] = true;
            m_open[stage] = static_cast<int>(action.messages.size());
            for (const PipelineMessage& message : action.messages) {
                const auto pair = message.send ? std::pair(stage, message.peer) : std::pair(message.peer, stage);
                (message.send ? m_sends : m_receives)[pair].push_back({labelOf(message, stage), stage});
                match(pair);
            }
            return true;
        }
        if (m_open[stage] > 0) return false;
        m_posted[stage] = false;
        ++m_next[stage];
        return true;
    }

    void match(std::pair<int, int> pair) {
        auto& sends = m_sends[pair];
        auto& receives = m_receives[pair];
        while (!sends.empty() && !receives.empty()) {
            EXPECT_EQ(sends.front().label, receives.front().label)
                << "from stage " << pair.first << " to " << pair.second;
            m_arrived[pair.second].insert(receives.front().label);
            --m_open[pair.first];
            --m_open[pair.second];
            sends.pop_front();
            receives.pop_front();
        }
    }

    int m_stages;
    int m_chunks;
    std::vector<std::vector<PipelineAction>> m_plans;
    std::vector<size_t> m_next;
    std::vector<int> m_open;
    std::vector<bool> m_posted;
    std::map<std::pair<int, int>, std::deque<Half>> m_sends, m_receives;
    std::map<int, std::set<Label>> m_arrived;
    std::set<Label> m_computed;
};

void expectCompletes(Schedule schedule, int stages, int microBatches, int chunks = 1) {
    SCOPED_TRACE(std::to_string(stages) + " stages of " + std::to_string(chunks) + " chunks, " +
                 std::to_string(microBatches) + " micro-batches");
    Rehearsal(schedule, stages, microBatches, chunks).expectEverythingMeets();
}

TEST(Schedule, EverySendMeetsItsReceiveWithoutDeadlock) {
    for (const Schedule schedule : {Schedule::gpipe, Schedule::oneForwardOneBackward})
        for (const auto& [stages, microBatches] : {std::pair(1, 3), std::pair(2, 1), std::pair(2, 5), std::pair(3, 2),
                                                   std::pair(4, 4), std::pair(4, 9), std::pair(8, 8)})
            expectCompletes(schedule, stages, microBatches);
}

TEST(Schedule, EveryInterleavedSendMeetsItsReceiveWithoutDeadlock) {
    for (const int stages : {2, 3, 4, 8})
        for (const int chunks : {2, 3, 4})
            for (const int rounds : {1, 2, 3, 5})
                expectCompletes(Schedule::interleaved, stages, stages * rounds, chunks);
}

}  // namespace
}  // namespace rankscope::reference
