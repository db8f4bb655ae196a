// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reference/workloads/check.h"
#include "reference/workloads/nccl_types.h"
#include "reference/workloads/worker.h"

namespace rankscope::reference {

namespace {

constexpr int64_t kHostPerCollectiveNs = 6000;  // what a training framework's host code spends around one

}  // namespace

Group Worker::join(const RankSet& ranks) {
    Group group{.size = ranks.size, .rank = ranks.rank};
    if (group.alone()) return group;  // so is everybody else: all groups of a kind have one size
    require(ncclCommSplit(m_world.comm, ranks.colour, ranks.rank, &group.comm, nullptr), "ncclCommSplit");
    m_groups.push_back(group);
    require(cudaStreamCreateWithFlags(&group.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    m_groups.back() = group;
    return group;
}

void Worker::beforeCollective() const {
    m_virtualGpu.hostWork(kHostPerCollectiveNs);
}

void Worker::failIfPlanned() {
    m_failures.strike(m_step);
    if (m_contradictedStep == m_step) return;
    m_contradictedStep = m_step;
    addContradiction();
}

void Worker::addContradiction() {
    const Faults& faults = m_scenario.faults;
    if (faults.mismatch && faults.mismatch->what == Mismatch::What::root && faults.mismatch->step == m_step) {
        const int root = faults.mismatch->rank == rank() ? 1 : 0;
        require(ncclBroadcast(m_loss, m_loss, 1, ncclFloat, root, m_world.comm, m_compute), "ncclBroadcast");
    }
    if (!m_secondWorld || faults.oppositeOrder->step != m_step) return;
    const bool opposite = faults.oppositeOrder->rank == rank();
    for (ncclComm_t comm : {opposite ? m_secondWorld : m_world.comm, opposite ? m_world.comm : m_secondWorld})
        require(ncclAllReduce(m_loss, m_loss, 1, ncclFloat, ncclSum, comm, m_compute), "ncclAllReduce");
}

void Worker::copy(const Group& group, const void* from, void* to, int64_t bytes) {
    if (from == to) return;
    const cudaStream_t stream = group.stream ? group.stream : m_compute;
    require(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
}

void Worker::issue(const Group& group, const Collective& planned) {
    const auto call = [=, this](const Collective& collective) {
        beforeCollective();
        const auto count = static_cast<size_t>(collective.elements);
        const ncclDataType_t type = ncclType(collective.dtype);
        switch (collective.op) {
            case Collective::Op::allReduce:
                return require(
                    ncclAllReduce(collective.from, collective.to, count, type, ncclSum, group.comm, group.stream),
                    "ncclAllReduce");
            case Collective::Op::allGather:
                return require(ncclAllGather(collective.from, collective.to, count, type, group.comm, group.stream),
                               "ncclAllGather");
            case Collective::Op::reduceScatter:
                return require(
                    ncclReduceScatter(collective.from, collective.to, count, type, ncclSum, group.comm, group.stream),
                    "ncclReduceScatter");
        }
    };
    Collective ofGroup = planned;
    ofGroup.communicator = group.comm;
    m_calls->communicate(m_compute, [=, this] { m_failures.issue(m_step, group.size, ofGroup, call); });
}

void Worker::allReduce(const Group& group, void* data, int64_t elements, Dtype dtype) {
    if (group.alone()) return;
    issue(group, {Collective::Op::allReduce, data, data, elements, dtype});
}

void Worker::allGather(const Group& group, const void* part, void* whole, int64_t elementsPerRank, Dtype dtype) {
    if (group.alone()) return copy(group, part, whole, elementsPerRank * dtypeBytes(dtype));
    issue(group, {Collective::Op::allGather, part, whole, elementsPerRank, dtype});
}

void Worker::reduceScatter(const Group& group, const void* whole, void* part, int64_t elementsPerRank, Dtype dtype) {
    if (group.alone()) return copy(group, whole, part, elementsPerRank * dtypeBytes(dtype));
    issue(group, {Collective::Op::reduceScatter, whole, part, elementsPerRank, dtype});
}

void Worker::copyToItself(const Group& group, const std::vector<Message>& messages, Dtype dtype) {
    std::vector<const Message*> sent;
    std::vector<const Message*> received;
    for (const Message& message : messages)
        if (message.peer == group.rank) (message.type == Message::Type::send ? sent : received).push_back(&message);
    for (size_t i = 0; i < sent.size() && i < received.size(); ++i)
        copy(group, sent[i]->data, received[i]->data, sent[i]->elements * dtypeBytes(dtype));
}

void Worker::exchange(const Group& group, const std::vector<Message>& messages, Dtype dtype) {
    copyToItself(group, messages, dtype);
    const auto leaves = [&](const Message& message) { return message.peer != group.rank; };
    if (std::none_of(messages.begin(), messages.end(), leaves)) return;
    beforeCollective();
    require(ncclGroupStart(), "ncclGroupStart");
    for (const Message& message : messages) {
        if (!leaves(message)) continue;
        const auto count = static_cast<size_t>(message.elements);
        if (message.type == Message::Type::send)
            require(ncclSend(message.data, count, ncclType(dtype), message.peer, group.comm, group.stream), "ncclSend");
        else
            require(ncclRecv(message.data, count, ncclType(dtype), message.peer, group.comm, group.stream), "ncclRecv");
    }
    require(ncclGroupEnd(), "ncclGroupEnd");
}

void Worker::startAfterCompute(const Group& group) {
    if (!group.stream) return;
    m_calls->enabled() ? m_calls->order(m_compute, group.stream) : order(m_compute, group.stream);
}

void Worker::startAfter(const Group& group, cudaEvent_t event) {
    m_calls->prepare([=] { require(cudaStreamWaitEvent(group.stream, event, 0), "cudaStreamWaitEvent"); });
}

void Worker::startAfter(const Group& group, const Group& earlier) {
    m_calls->prepare([=, this] { order(earlier.stream, group.stream); });
}

void Worker::record(const Group& group, cudaEvent_t event) {
    m_calls->prepare([=] { require(cudaEventRecord(event, group.stream), "cudaEventRecord"); }, event);
}

void Worker::computeAfter(const Group& group) {
    m_calls->issueAll();
    if (group.stream) order(group.stream, m_compute);
}

void Worker::computeAfter(cudaEvent_t recorded) {
    m_calls->issueUntil(recorded);
    require(cudaStreamWaitEvent(m_compute, recorded, 0), "cudaStreamWaitEvent");
}

}  // namespace rankscope::reference
