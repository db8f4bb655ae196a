// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_collectives.h"

#include <algorithm>
#include <utility>

#include "collector/importers/kineto_names.h"
#include "collector/ingest/communication_kernels.h"

namespace rankscope::collector {

void TorchCollective::completeWith(const TorchCollective& other) {
    if (op == store::Op::unknown) op = other.op;
    if (dataType == store::DataType::unknown) dataType = other.dataType;
    if (!inElements) inElements = other.inElements;
    if (!outElements) outElements = other.outElements;
    if (!groupSize) groupSize = other.groupSize;
    if (!sequence) sequence = other.sequence;
    if (!peerGlobalRank) peerGlobalRank = other.peerGlobalRank;
    if (group < 0) group = other.group;
}

void KinetoCollectives::addKernel(const KinetoEvent& event, size_t kernel, bool hasCall) {
    m_communication.push_back({kernel, event.externalId, toldBy(event), hasCall});
}

void KinetoCollectives::addOperator(const KinetoEvent& event, int32_t thread) {
    m_operators.push_back({thread, event.startNs, event.startNs + event.durNs, event.externalId, toldBy(event)});
}

void KinetoCollectives::addAnnotation(const KinetoEvent& event, const CollectiveAnnotation& told, int32_t place,
                                      bool onDevice) {
    Span span{place, event.startNs, event.startNs + event.durNs, event.externalId, {}};
    span.told.op = told.op;
    span.told.peerGlobalRank = told.peer;
    span.told.inElements = firstTensorElements(event.inputDims);
    span.told.dataType = dataTypeFromTorchName(firstInputType(event.inputType));
    (onDevice ? m_gpuAnnotations : m_annotations).push_back(std::move(span));
}

void KinetoCollectives::finish(const KinetoHeader& header, std::optional<int64_t> rank, RankRecording& recording) {
    makeCalls(recording);
    makeCommunicators(header, rank, recording);
}

TorchCollective KinetoCollectives::toldBy(const KinetoEvent& event) {
    TorchCollective told;
    told.op = opFromTorchName(event.collective);
    told.dataType = dataTypeFromTorchName(event.dataType);
    told.inElements = event.inElements;
    told.outElements = event.outElements;
    told.groupSize = event.groupSize;
    told.sequence = event.sequence;
    if (told.op == store::Op::send) told.peerGlobalRank = event.destinationRank;
    if (told.op == store::Op::recv) told.peerGlobalRank = event.sourceRank;
    if (!event.collective.empty()) told.group = groupOf(event);
    return told;
}

int32_t KinetoCollectives::groupOf(const KinetoEvent& event) {
    if (event.groupName.empty() && event.groupRanks.empty()) return -1;
    TorchGroup group;
    group.name = std::string(event.groupName);
    group.description = std::string(event.groupDescription);
    group.size = event.groupSize.value_or(0);
    group.ranks = parseRanks(event.groupRanks);
    if (group.ranks.empty() && event.groupStart && event.groupStride.value_or(0) > 0 && group.size > 0 &&
        group.size < (1 << 24)) {
        for (int64_t i = 0; i < group.size; ++i) group.ranks.push_back(*event.groupStart + i * *event.groupStride);
    }
    for (size_t i = 0; i < m_groups.size(); ++i) {
        if (m_groups[i].name == group.name && m_groups[i].ranks == group.ranks) return static_cast<int32_t>(i);
    }
    m_groups.push_back(std::move(group));
    return static_cast<int32_t>(m_groups.size() - 1);
}

const KinetoCollectives::Span* KinetoCollectives::innermost(const std::vector<Span>& spans, int32_t place,
                                                            int64_t timeNs) {
    // Sorted by (place, start): the last one that starts at or before the time and still runs. Spans of a place nest,
    // and hardly: a few steps back do.
    auto at = std::upper_bound(spans.begin(), spans.end(), std::pair(place, timeNs),
                               [](const std::pair<int32_t, int64_t>& key, const Span& span) {
                                   return key < std::pair(span.place, span.startNs);
                               });
    for (int steps = 0; at != spans.begin() && steps < 8; ++steps) {
        --at;
        if (at->place != place) return nullptr;
        if (at->endNs >= timeNs) return &*at;
    }
    return nullptr;
}

/// Spans are found by their place and start.
void KinetoCollectives::sortSpans() {
    for (auto* spans : {&m_operators, &m_annotations, &m_gpuAnnotations}) {
        std::stable_sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) {
            return std::pair(a.place, a.startNs) < std::pair(b.place, b.startNs);
        });
    }
    for (const Span& span : m_operators) {
        if (span.externalId && span.told.op != store::Op::unknown) m_operatorById.emplace(*span.externalId, &span);
    }
}

/// The calls that launched the kernels that communicate, by correlation.
std::unordered_map<uint32_t, const store::ApiCall*> KinetoCollectives::launches(const RankRecording& recording) const {
    std::unordered_map<uint32_t, const store::ApiCall*> launchOf;
    for (const CommunicationKernel& communication : m_communication) {
        const auto& correlation = recording.kernels[communication.kernel].correlationId;
        if (correlation) launchOf.emplace(*correlation, nullptr);
    }
    for (const store::ApiCall& call : recording.apiCalls) {
        if (!call.correlationId) continue;
        const auto wanted = launchOf.find(*call.correlationId);
        if (wanted != launchOf.end() && (wanted->second == nullptr || call.kind == store::ApiKind::launch))
            wanted->second = &call;
    }
    return launchOf;
}

/// Completes what the kernel tells by the spans around its launch, and by those that name it.
KinetoCollectives::CallPlace KinetoCollectives::complete(const CommunicationKernel& communication,
                                                         const store::Kernel& kernel, const store::ApiCall* launch,
                                                         TorchCollective& told) const {
    CallPlace place{nullptr, launch};
    if (launch != nullptr) {
        place.host = innermost(m_operators, launch->threadId, launch->startNs);
        if (place.host != nullptr) told.completeWith(place.host->told);
        if (const Span* annotation = innermost(m_annotations, launch->threadId, launch->startNs)) {
            told.completeWith(annotation->told);
            if (place.host == nullptr) place.host = annotation;
        }
    }
    // Old versions repeat the correlation id as External id: then it names no operator.
    if (place.host == nullptr && communication.externalId &&
        (!kernel.correlationId || *communication.externalId != *kernel.correlationId)) {
        const auto byId = m_operatorById.find(*communication.externalId);
        if (byId != m_operatorById.end()) {
            place.host = byId->second;
            told.completeWith(place.host->told);
        }
    }
    if (told.op == store::Op::unknown) {
        if (const Span* annotation = innermost(m_gpuAnnotations, kernel.streamId, kernel.startNs))
            told.completeWith(annotation->told);
    }
    return place;
}

void KinetoCollectives::makeCalls(RankRecording& recording) {
    if (m_communication.empty()) return;
    sortSpans();
    const auto launchOf = launches(recording);
    for (const CommunicationKernel& communication : m_communication) {
        if (!communication.hasCall) continue;
        const store::Kernel& kernel = recording.kernels[communication.kernel];
        const store::ApiCall* launch = kernel.correlationId ? launchOf.at(*kernel.correlationId) : nullptr;
        TorchCollective told = communication.told;
        const CallPlace place = complete(communication, kernel, launch, told);
        addCall(place, told, communication.kernel, recording);
    }
    adoptGroupsOfStreams(recording);
}

void KinetoCollectives::addCall(const CallPlace& place, const TorchCollective& told, size_t kernelIndex,
                                RankRecording& recording) const {
    store::Kernel& kernel = recording.kernels[kernelIndex];
    store::NcclCall call;
    call.evidence = store::evidence::kImported;
    call.op = told.op;
    if (call.op == store::Op::unknown) {
        call.op = opFromKernelName(recording.strings[kernel.nameId]);
        call.evidence = store::evidence::kInferred;
    } else {
        kernel.nccl = store::NcclKernel::byCall;
    }
    if (place.host != nullptr) {
        call.threadId = place.host->place;
        call.startNs = place.host->startNs;
        call.durNs = place.host->endNs - place.host->startNs;
    } else if (place.launch != nullptr) {
        call.threadId = place.launch->threadId;
        call.startNs = place.launch->startNs;
        call.durNs = place.launch->durNs;
    } else {
        call.startNs = kernel.startNs;  // launched before the recording began: no later than this
    }
    call.dataType = told.dataType;
    call.count = told.inElements ? told.inElements : told.outElements;
    call.bytes = collectiveBytes(call.op, told.dataType, told.inElements, told.outElements, told.groupSize);
    call.streamId = kernel.streamId;
    call.kernelId = static_cast<int64_t>(kernelIndex);
    if (told.group >= 0) {
        call.communicatorId = told.group;
        const auto& ranks = m_groups[static_cast<size_t>(told.group)].ranks;
        const auto peer =
            told.peerGlobalRank ? std::find(ranks.begin(), ranks.end(), *told.peerGlobalRank) : ranks.end();
        if (peer != ranks.end()) call.peer = static_cast<int32_t>(peer - ranks.begin());
    }
    const int64_t size = told.group < 0 ? told.groupSize.value_or(0) : 0;
    recording.toldGroupSizes.push_back(size > 0 && size < kMostRanks ? static_cast<int32_t>(size) : 0);
    if (!store::isP2p(call.op)) call.seq = told.sequence;  // the framework's own number; import renumbers from 0
    recording.ncclCalls.push_back(call);
}

/// A collective that was launched before the recording began has no operator in it. PyTorch gives each communicator a
/// stream of its own: where all others of the stream are of one group, it is, too.
void KinetoCollectives::adoptGroupsOfStreams(RankRecording& recording) {
    constexpr int64_t kSeveral = -1;
    std::unordered_map<int32_t, int64_t> groupOf;  // by stream
    for (const store::NcclCall& call : recording.ncclCalls) {
        if (!call.communicatorId || !call.streamId || store::isP2p(call.op)) continue;
        const auto [known, isNew] = groupOf.try_emplace(*call.streamId, *call.communicatorId);
        if (!isNew && known->second != *call.communicatorId) known->second = kSeveral;
    }
    for (size_t i = 0; i < recording.ncclCalls.size(); ++i) {
        store::NcclCall& call = recording.ncclCalls[i];
        if (call.communicatorId || !call.streamId || call.op == store::Op::unknown || store::isP2p(call.op)) continue;
        const auto group = groupOf.find(*call.streamId);
        if (group == groupOf.end() || group->second == kSeveral || recording.toldGroupSizes[i] > 0) continue;
        call.communicatorId = group->second;
        call.evidence |= store::evidence::kInferred;
    }
}

void KinetoCollectives::makeCommunicators(const KinetoHeader& header, std::optional<int64_t> rank,
                                          RankRecording& recording) const {
    // Operators tell groups too that no kernel of this recording ran on; those are left out.
    std::vector<int64_t> place(m_groups.size(), -1);
    for (store::NcclCall& call : recording.ncclCalls) {
        if (!call.communicatorId) continue;
        int64_t& index = place[static_cast<size_t>(*call.communicatorId)];
        if (index < 0) {
            index = static_cast<int64_t>(recording.communicators.size());
            recording.communicators.push_back(
                communicatorOf(m_groups[static_cast<size_t>(*call.communicatorId)], header, rank));
        }
        call.communicatorId = index;
    }
}

LocalCommunicator KinetoCollectives::communicatorOf(TorchGroup group, const KinetoHeader& header,
                                                    std::optional<int64_t> rank) {
    if (group.ranks.empty()) {
        for (const KinetoProcessGroup& told : header.groups) {
            if (told.name == group.name) group.ranks = told.ranks;
        }
    }
    if (group.size == 0) group.size = static_cast<int64_t>(group.ranks.size());
    LocalCommunicator communicator;
    communicator.identity = "process_group";
    communicator.name = group.description.empty() || group.description == "undefined" ? group.name : group.description;
    communicator.nRanks = static_cast<int32_t>(group.size);
    // The name and the members are the same on every member. Groups without a list of members stay apart by name and
    // size only.
    uint64_t hash = 0xcbf29ce484222325u;
    const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
    for (const char c : group.name) mix(static_cast<unsigned char>(c));
    mix(static_cast<uint64_t>(group.size));
    for (const int64_t member : group.ranks) mix(static_cast<uint64_t>(member) + 0x100);
    communicator.hash = hash;
    if (rank) {
        const auto self = std::find(group.ranks.begin(), group.ranks.end(), *rank);
        if (self != group.ranks.end()) communicator.commRank = static_cast<int32_t>(self - group.ranks.begin());
    }
    return communicator;
}

}  // namespace rankscope::collector
