// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/mapped_job.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"
#include "collector/importers/kineto_names.h"
#include "collector/importers/recording_rows.h"

namespace rankscope::collector {

MappedJob::MappedJob(TraceMapping mapping, const std::vector<std::filesystem::path>& files)
    : m_mapping(std::move(mapping)), m_sizes(m_mapping.axes.size(), 0) {
    for (const std::filesystem::path& file : files) m_files.try_emplace(file, readMappedEvents(m_mapping, file));
    for (const auto& [file, events] : m_files)
        for (const MappedEvent& event : events.events)
            for (size_t axis = 0; axis < m_sizes.size(); ++axis)
                m_sizes[axis] = std::max(m_sizes[axis], event.place[axis] + 1);
    int64_t ranks = 1;
    for (const int64_t size : m_sizes)
        if (__builtin_mul_overflow(ranks, size, &ranks) || ranks > kMostRanks)
            throw ImportError(files.front(), 0, "its axes make more than " + std::to_string(kMostRanks) + " ranks",
                              "\"tells\" of the mapping take another number for a rank's");
    placeSteps();
    findGroups();
    tellPipelines();
}

int64_t MappedJob::rankOf(const RankPlace& place) const {
    int64_t rank = 0;
    for (size_t axis = 0; axis < m_sizes.size(); ++axis) rank = rank * m_sizes[axis] + place[axis];
    return rank;
}

/// A step lasts from its first event on any rank to its last, or from its own zero. Where times do not go on from step
/// to step, steps are laid end to end.
void MappedJob::placeSteps() {
    for (const auto& [file, events] : m_files)
        for (const MappedEvent& event : events.events) {
            if (!event.step) continue;
            Span& step = m_steps[*event.step];
            step.startNs = std::min(step.startNs, event.startNs);
            step.endNs = std::max(step.endNs, event.startNs + event.durNs);
        }
    if (m_mapping.stepTimes == TraceMapping::StepTimes::continued) return;
    std::map<int64_t, int64_t> shifts;
    int64_t atNs = 0;
    for (auto& [number, step] : m_steps) {
        if (m_mapping.stepTimes == TraceMapping::StepTimes::restart) step.startNs = std::min<int64_t>(step.startNs, 0);
        const int64_t lengthNs = step.endNs - step.startNs;
        shifts[number] = atNs - step.startNs;
        step.startNs = atNs;
        if (__builtin_add_overflow(atNs, lengthNs, &atNs))
            throw ImportError(m_files.begin()->first, 0, "its steps last longer than times can tell", "");
        step.endNs = atNs;
    }
    for (auto& [file, events] : m_files)
        for (MappedEvent& event : events.events) event.startNs += shifts[*event.step];
}

/// Stages are the ranks that differ on the pipelines' axis alone; passes that stand before the first backward one on
/// their first stage tell the schedule: all of them (GPipe), or as many as there are stages (1F1B).
void MappedJob::tellPipelines() {
    if (!m_mapping.pipelines) return;
    struct Passes {
        std::vector<int64_t> forward, backward;  // starts
    };
    const auto& [axis, forward, backward] = *m_mapping.pipelines;
    std::map<RankPlace, std::map<int64_t, int64_t>> pipelines;  // ranks by stage
    std::map<std::pair<int64_t, int64_t>, Passes> passes;       // of first stages, by rank and step
    for (const auto& [file, events] : m_files)
        for (const MappedEvent& event : events.events) {
            const int64_t rank = rankOf(event.place);
            RankPlace pipeline = event.place;
            pipeline[axis] = -1;
            pipelines[pipeline][event.place[axis]] = rank;
            if (!event.step || event.place[axis] != 0) continue;
            const std::string& name = m_mapping.rules[event.rule].name;
            Passes& own = passes[{rank, *event.step}];
            if (name == forward) own.forward.push_back(event.startNs);
            if (name == backward) own.backward.push_back(event.startNs);
        }
    std::set<size_t> batches, ahead;
    for (auto& [where, own] : passes) {
        batches.insert(own.forward.size());
        batches.insert(own.backward.size());
        const auto first = std::ranges::min_element(own.backward);
        if (first == own.backward.end()) return;
        ahead.insert(
            static_cast<size_t>(std::ranges::count_if(own.forward, [&](int64_t startNs) { return startNs < *first; })));
    }
    const auto stages = static_cast<size_t>(m_sizes[axis]);
    if (batches.size() != 1 || stages < 2) return;
    const size_t all = *batches.begin();
    const bool isAlike = ahead.size() == 1;
    const char* schedule = "unknown";
    if (isAlike && *ahead.begin() == all && all != stages) schedule = "gpipe";
    if (isAlike && *ahead.begin() == std::min(all, stages)) schedule = "1f1b";
    m_pipelines = std::string(schedule) + ' ' + std::to_string(all);
    for (const auto& [place, ranks] : pipelines) {
        if (ranks.size() != stages) continue;
        for (const auto& [stage, rank] : ranks) m_pipelines += (stage == 0 ? ';' : ' ') + std::to_string(rank);
    }
}

MappedJob::GroupKey MappedJob::groupOf(const MappedEvent& event) const {
    const MappingRule& rule = m_mapping.rules[event.rule];
    GroupKey key{rule.along, rule.group, event.place};
    for (const size_t axis : rule.along) key.place[axis] = -1;
    if (!key.name.empty()) return key;
    for (const size_t axis : rule.along) key.name += (key.name.empty() ? "" : "-") + m_mapping.axes[axis];
    return key;
}

void MappedJob::findGroups() {
    for (const auto& [file, events] : m_files)
        for (const MappedEvent& event : events.events)
            if (m_mapping.rules[event.rule].op != store::Op::unknown)
                m_groups[groupOf(event)].emplace(rankOf(event.place), event.place);
}

/// Makes the recording of one rank of a file.
class MappedJob::RankMaker {
  public:
    RankMaker(const MappedJob& job, const LocalStrings& texts, int64_t rank) : m_job(job), m_texts(texts) {
        m_made.header.rank = rank;
        m_made.header.worldSize = 1;
        for (const int64_t size : job.m_sizes) *m_made.header.worldSize *= size;
    }

    void add(const MappedEvent& event) {
        ++m_made.events;
        if (event.step) m_steps.insert(*event.step);
        const MappingRule& rule = m_job.m_mapping.rules[event.rule];
        if (rule.kind == MappingRule::Kind::range) return addRange(event);
        if (rule.kind == MappingRule::Kind::copy) return addCopy(event);
        const auto group =
            rule.op == store::Op::unknown ? m_job.m_groups.end() : m_job.m_groups.find(m_job.groupOf(event));
        // A group of one has nobody to wait for: what it runs is work of its own.
        const bool communicates = group != m_job.m_groups.end() && group->second.size() > 1;
        store::Kernel kernel;
        kernel.startNs = event.startNs;
        kernel.durNs = event.durNs;
        kernel.nameId = m_made.recording.strings.intern(nameOf(event, rule));
        // What is sent and received at the same time is on one lane and on streams of its own.
        kernel.streamId = streamOf(event.lane, communicates ? static_cast<int64_t>(event.rule) : -1);
        if (communicates) {
            kernel.nccl = store::NcclKernel::byCall;
            addCall(event, rule, *group, kernel);
        }
        m_made.recording.kernels.push_back(kernel);
    }

    FileRank take() {
        const int32_t thread = threadOf("steps");
        for (const int64_t number : m_steps) {
            const Span& span = m_job.m_steps.at(number);
            // The name that torch.profiler gives a step.
            pushRange("ProfilerStep#" + std::to_string(number), span.startNs, span.endNs - span.startNs, thread);
        }
        setDepths(m_made.recording);
        if (!m_job.m_pipelines.empty()) m_made.recording.meta["told_pipelines"] = m_job.m_pipelines;
        return std::move(m_made);
    }

  private:
    using Group = std::pair<const GroupKey, std::map<int64_t, RankPlace>>;

    /// Work that differs has names that do: what ranks do under one name is compared.
    std::string nameOf(const MappedEvent& event, const MappingRule& rule) const {
        std::string where;
        for (const size_t axis : rule.differs)
            where +=
                (where.empty() ? " (" : ", ") + m_job.m_mapping.axes[axis] + ' ' + std::to_string(event.place[axis]);
        return m_texts[event.name] + where + (where.empty() ? "" : ")");
    }

    void pushRange(const std::string& name, int64_t startNs, int64_t durNs, int32_t thread) {
        store::NvtxRange range;
        range.startNs = startNs;
        range.durNs = durNs;
        range.threadId = thread;
        range.nameId = m_made.recording.strings.intern(name);
        m_made.recording.nvtx.push_back(range);
    }

    void addCopy(const MappedEvent& event) {
        store::Memcpy copy;
        copy.startNs = event.startNs;
        copy.durNs = event.durNs;
        copy.kind = parseCopy(m_texts[event.name], "").kind;
        copy.streamId = streamOf(event.lane, -1);
        m_made.recording.memcpys.push_back(copy);
    }

    void addRange(const MappedEvent& event) {
        pushRange(m_texts[event.name], event.startNs, event.durNs, threadOf(m_texts[event.lane]));
    }

    int32_t threadOf(const std::string& name) {
        const auto [known, isNew] = m_threads.try_emplace(name, static_cast<int32_t>(m_threads.size()));
        if (isNew) m_made.recording.threads.push_back({std::nullopt, name});
        return known->second;
    }

    int32_t streamOf(int32_t lane, int64_t rule) {
        const auto [known, isNew] = m_streams.try_emplace({lane, rule}, static_cast<int32_t>(m_streams.size()));
        if (isNew) {
            LocalStream stream;
            stream.nativeId = known->second + 1;  // 0 is CUDA's default stream
            m_made.recording.streams.push_back(stream);
        }
        return known->second;
    }

    void addCall(const MappedEvent& event, const MappingRule& rule, const Group& group, const store::Kernel& kernel) {
        store::NcclCall call;
        call.startNs = kernel.startNs;  // no later than this
        call.op = rule.op;
        call.communicatorId = communicatorOf(group);
        call.streamId = kernel.streamId;
        call.kernelId = static_cast<int64_t>(m_made.recording.kernels.size());
        call.evidence = store::evidence::kImported;
        if (rule.kind == MappingRule::Kind::message) call.peer = peerOf(event.place, rule, group);
        m_made.recording.ncclCalls.push_back(call);
    }

    /// Behind the last rank of an axis comes the first, as with interleaved stages of a pipeline.
    std::optional<int32_t> peerOf(RankPlace place, const MappingRule& rule, const Group& group) const {
        const size_t axis = rule.along.front();
        const int64_t size = m_job.m_sizes[axis];
        place[axis] = ((place[axis] + rule.peer % size) % size + size) % size;
        const auto peer = group.second.find(m_job.rankOf(place));
        if (peer == group.second.end()) return std::nullopt;
        return static_cast<int32_t>(std::distance(group.second.begin(), peer));
    }

    int64_t communicatorOf(const Group& group) {
        const auto [known, isNew] = m_communicators.try_emplace(&group, static_cast<int64_t>(m_communicators.size()));
        if (isNew) {
            LocalCommunicator communicator;
            communicator.identity = "process_group";
            communicator.name = group.first.name;
            communicator.nRanks = static_cast<int32_t>(group.second.size());
            const auto self = group.second.find(*m_made.header.rank);
            communicator.commRank = static_cast<int32_t>(std::distance(group.second.begin(), self));
            communicator.hash = 0xcbf29ce484222325u;  // FNV-1a of its name and members
            const auto mix = [&](uint64_t value) { communicator.hash = (communicator.hash ^ value) * 0x100000001b3u; };
            for (const char c : communicator.name) mix(static_cast<unsigned char>(c));
            for (const auto& [rank, place] : group.second) mix(static_cast<uint64_t>(rank) + 0x100);
            m_made.recording.communicators.push_back(std::move(communicator));
        }
        return known->second;
    }

    const MappedJob& m_job;
    const LocalStrings& m_texts;
    FileRank m_made;
    std::set<int64_t> m_steps;
    std::map<std::string, int32_t> m_threads;
    std::map<std::pair<int32_t, int64_t>, int32_t> m_streams;  // by lane, and rule of what communicates
    std::map<const Group*, int64_t> m_communicators;
};

void MappedJob::read(const std::filesystem::path& file, const std::function<void(FileRank)>& take) const {
    const MappedEvents& events = m_files.at(file);
    std::map<int64_t, RankMaker> ranks;
    for (const MappedEvent& event : events.events) {
        const int64_t rank = rankOf(event.place);
        ranks.try_emplace(rank, *this, events.texts, rank).first->second.add(event);
    }
    ImportLosses losses = events.losses;  // of the file, and told once
    const bool communicates =
        std::ranges::any_of(m_mapping.rules, [](const MappingRule& rule) { return rule.op != store::Op::unknown; });
    losses.add("source_absent", "info", std::nullopt,
               "read by the mapping " + m_mapping.file.filename().string() +
                   ", which tells what ran and when: " + (communicates ? "sizes of messages" : "communication") +
                   ", launches, copies and what hosts did are not known, and what rests on them is not judged");
    for (auto& [rank, maker] : ranks) {
        FileRank made = maker.take();
        made.losses = std::exchange(losses, {});
        take(std::move(made));
    }
}

}  // namespace rankscope::collector
