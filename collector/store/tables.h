// SPDX-License-Identifier: Apache-2.0
// Which struct of event_model.h is which table of schema.sql, column by column. A unit test compares this list with the
// schema.
#pragma once

#include <tuple>

#include "collector/store/event_model.h"

namespace rankscope::store {

template <typename Row, typename Field>
struct Column {
    const char* name;
    Field Row::*field;
};
// Clang before 17 deduces no aggregate's arguments by itself.
template <typename Row, typename Field>
Column(const char*, Field Row::*) -> Column<Row, Field>;

template <typename Row>
struct Table;

// A column per line.
// clang-format off
template <>
struct Table<Host> {
    static constexpr const char* kName = "host";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Host::id},
        Column{"name", &Host::name},
        Column{"boot_id", &Host::bootId});
};

template <>
struct Table<ClockModel> {
    static constexpr const char* kName = "clock_model";
    static constexpr auto kColumns = std::make_tuple(
        Column{"host_id", &ClockModel::hostId},
        Column{"method", &ClockModel::method},
        Column{"anchor_ns", &ClockModel::anchorNs},
        Column{"offset_ns", &ClockModel::offsetNs},
        Column{"drift_ppb", &ClockModel::driftPpb},
        Column{"bound_ns", &ClockModel::boundNs},
        Column{"samples", &ClockModel::samples});
};

template <>
struct Table<Process> {
    static constexpr const char* kName = "process";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Process::id},
        Column{"host_id", &Process::hostId},
        Column{"pid", &Process::pid},
        Column{"parent_pid", &Process::parentPid},
        Column{"attempt", &Process::attempt},
        Column{"executable", &Process::executable},
        Column{"start_ns", &Process::startNs},
        Column{"end_ns", &Process::endNs},
        Column{"end_kind", &Process::endKind},
        Column{"end_code", &Process::endCode},
        Column{"identity_source", &Process::identitySource},
        Column{"capture_file", &Process::captureFile});
};

template <>
struct Table<Rank> {
    static constexpr const char* kName = "rank";
    static constexpr auto kColumns = std::make_tuple(
        Column{"rank", &Rank::rank},
        Column{"process_id", &Rank::processId},
        Column{"host_id", &Rank::hostId},
        Column{"local_rank", &Rank::localRank},
        Column{"device_id", &Rank::deviceId},
        Column{"state", &Rank::state});
};

template <>
struct Table<Device> {
    static constexpr const char* kName = "device";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Device::id},
        Column{"host_id", &Device::hostId},
        Column{"ordinal", &Device::ordinal},
        Column{"name", &Device::name},
        Column{"memory_bytes", &Device::memoryBytes},
        Column{"multiprocessors", &Device::multiprocessors},
        Column{"compute_capability", &Device::computeCapability});
};

template <>
struct Table<MachineLink> {
    static constexpr const char* kName = "machine_link";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &MachineLink::id},
        Column{"host_id", &MachineLink::hostId},
        Column{"rank", &MachineLink::rank},
        Column{"kind", &MachineLink::kind},
        Column{"name", &MachineLink::name},
        Column{"count", &MachineLink::count},
        Column{"generation", &MachineLink::generation},
        Column{"bytes_per_s", &MachineLink::bytesPerS},
        Column{"source", &MachineLink::source});
};

template <>
struct Table<Thread> {
    static constexpr const char* kName = "thread";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Thread::id},
        Column{"process_id", &Thread::processId},
        Column{"rank", &Thread::rank},
        Column{"tid", &Thread::tid},
        Column{"name", &Thread::name});
};

template <>
struct Table<Stream> {
    static constexpr const char* kName = "stream";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Stream::id},
        Column{"rank", &Stream::rank},
        Column{"device_id", &Stream::deviceId},
        Column{"context", &Stream::context},
        Column{"native_id", &Stream::nativeId},
        Column{"handle", &Stream::handle},
        Column{"priority", &Stream::priority});
};

template <>
struct Table<Communicator> {
    static constexpr const char* kName = "communicator";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Communicator::id},
        Column{"hash", &Communicator::hash},
        Column{"identity", &Communicator::identity},
        Column{"n_ranks", &Communicator::nRanks},
        Column{"parent_id", &Communicator::parentId},
        Column{"name", &Communicator::name},
        Column{"node_count", &Communicator::nodeCount});
};

template <>
struct Table<CommunicatorMember> {
    static constexpr const char* kName = "communicator_member";
    static constexpr auto kColumns = std::make_tuple(
        Column{"communicator_id", &CommunicatorMember::communicatorId},
        Column{"comm_rank", &CommunicatorMember::commRank},
        Column{"rank", &CommunicatorMember::rank},
        Column{"create_ns", &CommunicatorMember::createNs},
        Column{"destroy_ns", &CommunicatorMember::destroyNs},
        Column{"end_kind", &CommunicatorMember::endKind});
};

template <>
struct Table<Kernel> {
    static constexpr const char* kName = "kernel";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Kernel::id},
        Column{"rank", &Kernel::rank},
        Column{"stream_id", &Kernel::streamId},
        Column{"start_ns", &Kernel::startNs},
        Column{"dur_ns", &Kernel::durNs},
        Column{"name_id", &Kernel::nameId},
        Column{"correlation_id", &Kernel::correlationId},
        Column{"nccl", &Kernel::nccl},
        Column{"grid_blocks", &Kernel::gridBlocks},
        Column{"block_threads", &Kernel::blockThreads},
        Column{"graph_node", &Kernel::graphNode});
};

template <>
struct Table<Memcpy> {
    static constexpr const char* kName = "memcpy";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Memcpy::id},
        Column{"rank", &Memcpy::rank},
        Column{"stream_id", &Memcpy::streamId},
        Column{"start_ns", &Memcpy::startNs},
        Column{"dur_ns", &Memcpy::durNs},
        Column{"bytes", &Memcpy::bytes},
        Column{"kind", &Memcpy::kind},
        Column{"src_memory", &Memcpy::srcMemory},
        Column{"dst_memory", &Memcpy::dstMemory},
        Column{"correlation_id", &Memcpy::correlationId});
};

template <>
struct Table<Memset> {
    static constexpr const char* kName = "memset";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Memset::id},
        Column{"rank", &Memset::rank},
        Column{"stream_id", &Memset::streamId},
        Column{"start_ns", &Memset::startNs},
        Column{"dur_ns", &Memset::durNs},
        Column{"bytes", &Memset::bytes},
        Column{"correlation_id", &Memset::correlationId});
};

template <>
struct Table<ApiCall> {
    static constexpr const char* kName = "api_call";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &ApiCall::id},
        Column{"rank", &ApiCall::rank},
        Column{"thread_id", &ApiCall::threadId},
        Column{"start_ns", &ApiCall::startNs},
        Column{"dur_ns", &ApiCall::durNs},
        Column{"name_id", &ApiCall::nameId},
        Column{"kind", &ApiCall::kind},
        Column{"source", &ApiCall::source},
        Column{"correlation_id", &ApiCall::correlationId},
        Column{"argument", &ApiCall::argument});
};

template <>
struct Table<Synchronization> {
    static constexpr const char* kName = "synchronization";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Synchronization::id},
        Column{"rank", &Synchronization::rank},
        Column{"stream_id", &Synchronization::streamId},
        Column{"start_ns", &Synchronization::startNs},
        Column{"dur_ns", &Synchronization::durNs},
        Column{"kind", &Synchronization::kind},
        Column{"event_id", &Synchronization::eventId},
        Column{"correlation_id", &Synchronization::correlationId});
};

template <>
struct Table<CudaEvent> {
    static constexpr const char* kName = "cuda_event";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &CudaEvent::id},
        Column{"rank", &CudaEvent::rank},
        Column{"stream_id", &CudaEvent::streamId},
        Column{"time_ns", &CudaEvent::timeNs},
        Column{"event_id", &CudaEvent::eventId},
        Column{"correlation_id", &CudaEvent::correlationId});
};

template <>
struct Table<Allocation> {
    static constexpr const char* kName = "allocation";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Allocation::id},
        Column{"rank", &Allocation::rank},
        Column{"thread_id", &Allocation::threadId},
        Column{"start_ns", &Allocation::startNs},
        Column{"dur_ns", &Allocation::durNs},
        Column{"free", &Allocation::free},
        Column{"bytes", &Allocation::bytes},
        Column{"name_id", &Allocation::nameId});
};

template <>
struct Table<ThreadStack> {
    static constexpr const char* kName = "thread_stack";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &ThreadStack::id},
        Column{"rank", &ThreadStack::rank},
        Column{"reading", &ThreadStack::reading},
        Column{"read_ns", &ThreadStack::readNs},
        Column{"stalled_ns", &ThreadStack::stalledNs},
        Column{"tid", &ThreadStack::tid},
        Column{"name", &ThreadStack::name},
        Column{"state", &ThreadStack::state},
        Column{"language", &ThreadStack::language},
        Column{"frames", &ThreadStack::frames});
};

template <>
struct Table<DeviceHealth> {
    static constexpr const char* kName = "device_health";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &DeviceHealth::id},
        Column{"rank", &DeviceHealth::rank},
        Column{"time_ns", &DeviceHealth::timeNs},
        Column{"readings", &DeviceHealth::readings},
        Column{"sm_mhz", &DeviceHealth::smMhz},
        Column{"sm_max_mhz", &DeviceHealth::smMaxMhz},
        Column{"memory_mhz", &DeviceHealth::memoryMhz},
        Column{"memory_max_mhz", &DeviceHealth::memoryMaxMhz},
        Column{"clocks_events", &DeviceHealth::clocksEvents},
        Column{"power_mw", &DeviceHealth::powerMw},
        Column{"power_limit_mw", &DeviceHealth::powerLimitMw},
        Column{"temperature_c", &DeviceHealth::temperatureC},
        Column{"ecc_corrected", &DeviceHealth::eccCorrected},
        Column{"ecc_uncorrected", &DeviceHealth::eccUncorrected},
        Column{"nvlink_errors", &DeviceHealth::nvlinkErrors},
        Column{"memory_used_bytes", &DeviceHealth::memoryUsedBytes},
        Column{"memory_total_bytes", &DeviceHealth::memoryTotalBytes},
        Column{"utilization_percent", &DeviceHealth::utilizationPercent},
        Column{"xid", &DeviceHealth::xid});
};

template <>
struct Table<PortCounter> {
    static constexpr const char* kName = "port_counter";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &PortCounter::id},
        Column{"host_id", &PortCounter::hostId},
        Column{"name", &PortCounter::name},
        Column{"time_ns", &PortCounter::timeNs},
        Column{"sent_bytes", &PortCounter::sentBytes},
        Column{"received_bytes", &PortCounter::receivedBytes},
        Column{"errors", &PortCounter::errors},
        Column{"discards", &PortCounter::discards},
        Column{"link_downs", &PortCounter::linkDowns});
};

template <>
struct Table<FailedAllocation> {
    static constexpr const char* kName = "failed_allocation";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &FailedAllocation::id},
        Column{"rank", &FailedAllocation::rank},
        Column{"refused_ns", &FailedAllocation::refusedNs},
        Column{"bytes", &FailedAllocation::bytes},
        Column{"call", &FailedAllocation::call});
};

template <>
struct Table<NvtxRange> {
    static constexpr const char* kName = "nvtx";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &NvtxRange::id},
        Column{"rank", &NvtxRange::rank},
        Column{"thread_id", &NvtxRange::threadId},
        Column{"start_ns", &NvtxRange::startNs},
        Column{"dur_ns", &NvtxRange::durNs},
        Column{"kind", &NvtxRange::kind},
        Column{"domain_id", &NvtxRange::domainId},
        Column{"name_id", &NvtxRange::nameId},
        Column{"depth", &NvtxRange::depth},
        Column{"color", &NvtxRange::color},
        Column{"category", &NvtxRange::category},
        Column{"payload", &NvtxRange::payload});
};

template <>
struct Table<NcclCall> {
    static constexpr const char* kName = "nccl_call";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &NcclCall::id},
        Column{"rank", &NcclCall::rank},
        Column{"thread_id", &NcclCall::threadId},
        Column{"communicator_id", &NcclCall::communicatorId},
        Column{"start_ns", &NcclCall::startNs},
        Column{"dur_ns", &NcclCall::durNs},
        Column{"op", &NcclCall::op},
        Column{"seq", &NcclCall::seq},
        Column{"count", &NcclCall::count},
        Column{"data_type", &NcclCall::dataType},
        Column{"bytes", &NcclCall::bytes},
        Column{"reduce_op", &NcclCall::reduceOp},
        Column{"peer", &NcclCall::peer},
        Column{"stream_id", &NcclCall::streamId},
        Column{"group_id", &NcclCall::groupId},
        Column{"kernel_id", &NcclCall::kernelId},
        Column{"algorithm", &NcclCall::algorithm},
        Column{"protocol", &NcclCall::protocol},
        Column{"channels", &NcclCall::channels},
        Column{"evidence", &NcclCall::evidence});
};

template <>
struct Table<RecorderCall> {
    static constexpr const char* kName = "recorder_call";
    static constexpr auto kColumns = std::make_tuple(
        Column{"call_id", &RecorderCall::callId},
        Column{"state", &RecorderCall::state},
        Column{"started_ns", &RecorderCall::startedNs},
        Column{"completed_ns", &RecorderCall::completedNs},
        Column{"timeout_ns", &RecorderCall::timeoutNs},
        Column{"place", &RecorderCall::place});
};

template <>
struct Table<RecorderGroup> {
    static constexpr const char* kName = "recorder_group";
    static constexpr auto kColumns = std::make_tuple(
        Column{"communicator_id", &RecorderGroup::communicatorId},
        Column{"comm_rank", &RecorderGroup::commRank},
        Column{"rank", &RecorderGroup::rank},
        Column{"enqueued", &RecorderGroup::enqueued},
        Column{"completed", &RecorderGroup::completed},
        Column{"from_start", &RecorderGroup::fromStart});
};

template <>
struct Table<ProxyOp> {
    static constexpr const char* kName = "proxy_op";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &ProxyOp::id},
        Column{"rank", &ProxyOp::rank},
        Column{"communicator_id", &ProxyOp::communicatorId},
        Column{"call_id", &ProxyOp::callId},
        Column{"start_ns", &ProxyOp::startNs},
        Column{"dur_ns", &ProxyOp::durNs},
        Column{"channel", &ProxyOp::channel},
        Column{"peer", &ProxyOp::peer},
        Column{"is_send", &ProxyOp::isSend},
        Column{"bytes", &ProxyOp::bytes},
        Column{"steps", &ProxyOp::steps},
        Column{"gpu_wait_ns", &ProxyOp::gpuWaitNs},
        Column{"peer_wait_ns", &ProxyOp::peerWaitNs},
        Column{"network_wait_ns", &ProxyOp::networkWaitNs},
        Column{"on_behalf_of", &ProxyOp::onBehalfOf});
};

template <>
struct Table<KernelSummary> {
    static constexpr const char* kName = "kernel_summary";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &KernelSummary::id},
        Column{"rank", &KernelSummary::rank},
        Column{"start_ns", &KernelSummary::startNs},
        Column{"dur_ns", &KernelSummary::durNs},
        Column{"stream_id", &KernelSummary::streamId},
        Column{"name_id", &KernelSummary::nameId},
        Column{"nccl", &KernelSummary::nccl},
        Column{"grid_blocks", &KernelSummary::gridBlocks},
        Column{"block_threads", &KernelSummary::blockThreads},
        Column{"count", &KernelSummary::count},
        Column{"total_ns", &KernelSummary::totalNs},
        Column{"tenth_ns", &KernelSummary::tenthNs},
        Column{"median_ns", &KernelSummary::medianNs},
        Column{"ninth_ns", &KernelSummary::ninthNs},
        Column{"longest_ns", &KernelSummary::longestNs});
};

template <>
struct Table<KernelSpan> {
    static constexpr const char* kName = "kernel_span";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &KernelSpan::id},
        Column{"rank", &KernelSpan::rank},
        Column{"start_ns", &KernelSpan::startNs},
        Column{"dur_ns", &KernelSpan::durNs},
        Column{"compute_ns", &KernelSpan::computeNs},
        Column{"nccl_ns", &KernelSpan::ncclNs},
        Column{"busy_ns", &KernelSpan::busyNs},
        Column{"other_kinds", &KernelSpan::otherKinds},
        Column{"other_count", &KernelSpan::otherCount},
        Column{"other_ns", &KernelSpan::otherNs},
        Column{"late_count", &KernelSpan::lateCount});
};

template <>
struct Table<Counter> {
    static constexpr const char* kName = "counter";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Counter::id},
        Column{"rank", &Counter::rank},
        Column{"time_ns", &Counter::timeNs},
        Column{"name_id", &Counter::nameId},
        Column{"value", &Counter::value});
};

template <>
struct Table<Collective> {
    static constexpr const char* kName = "collective";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Collective::id},
        Column{"communicator_id", &Collective::communicatorId},
        Column{"seq", &Collective::seq},
        Column{"op", &Collective::op},
        Column{"bytes", &Collective::bytes},
        Column{"data_type", &Collective::dataType},
        Column{"algorithm", &Collective::algorithm},
        Column{"protocol", &Collective::protocol},
        Column{"members", &Collective::members},
        Column{"first_arrival_ns", &Collective::firstArrivalNs},
        Column{"last_arrival_ns", &Collective::lastArrivalNs},
        Column{"last_rank", &Collective::lastRank},
        Column{"end_ns", &Collective::endNs},
        Column{"transfer_ns", &Collective::transferNs},
        Column{"complete", &Collective::complete},
        Column{"step", &Collective::step});
};

template <>
struct Table<CollectiveMember> {
    static constexpr const char* kName = "collective_member";
    static constexpr auto kColumns = std::make_tuple(
        Column{"collective_id", &CollectiveMember::collectiveId},
        Column{"rank", &CollectiveMember::rank},
        Column{"call_id", &CollectiveMember::callId},
        Column{"kernel_id", &CollectiveMember::kernelId},
        Column{"arrival_ns", &CollectiveMember::arrivalNs},
        Column{"end_ns", &CollectiveMember::endNs},
        Column{"wait_ns", &CollectiveMember::waitNs},
        Column{"transfer_ns", &CollectiveMember::transferNs});
};

template <>
struct Table<P2p> {
    static constexpr const char* kName = "p2p";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &P2p::id},
        Column{"communicator_id", &P2p::communicatorId},
        Column{"src_rank", &P2p::srcRank},
        Column{"dst_rank", &P2p::dstRank},
        Column{"seq", &P2p::seq},
        Column{"bytes", &P2p::bytes},
        Column{"send_call_id", &P2p::sendCallId},
        Column{"recv_call_id", &P2p::recvCallId},
        Column{"send_arrival_ns", &P2p::sendArrivalNs},
        Column{"recv_arrival_ns", &P2p::recvArrivalNs},
        Column{"send_end_ns", &P2p::sendEndNs},
        Column{"recv_end_ns", &P2p::recvEndNs},
        Column{"send_wait_ns", &P2p::sendWaitNs},
        Column{"recv_wait_ns", &P2p::recvWaitNs},
        Column{"transfer_ns", &P2p::transferNs},
        Column{"complete", &P2p::complete});
};

template <>
struct Table<Step> {
    static constexpr const char* kName = "step";
    static constexpr auto kColumns = std::make_tuple(
        Column{"rank", &Step::rank},
        Column{"step", &Step::step},
        Column{"start_ns", &Step::startNs},
        Column{"dur_ns", &Step::durNs},
        Column{"warm_up", &Step::warmUp});
};

template <>
struct Table<Loss> {
    static constexpr const char* kName = "loss";
    static constexpr auto kColumns = std::make_tuple(
        Column{"id", &Loss::id},
        Column{"kind", &Loss::kind},
        Column{"severity", &Loss::severity},
        Column{"rank", &Loss::rank},
        Column{"source", &Loss::source},
        Column{"count", &Loss::count},
        Column{"file", &Loss::file},
        Column{"offset", &Loss::offset},
        Column{"message", &Loss::message});
};

template <>
struct Table<SourceStatus> {
    static constexpr const char* kName = "source_status";
    static constexpr auto kColumns = std::make_tuple(
        Column{"rank", &SourceStatus::rank},
        Column{"source", &SourceStatus::source},
        Column{"state", &SourceStatus::state},
        Column{"code", &SourceStatus::code},
        Column{"message", &SourceStatus::message});
};

template <>
struct Table<Extent> {
    static constexpr const char* kName = "extent";
    static constexpr auto kColumns = std::make_tuple(
        Column{"table_name", &Extent::tableName},
        Column{"rank", &Extent::rank},
        Column{"first_id", &Extent::firstId},
        Column{"last_id", &Extent::lastId},
        Column{"max_dur_ns", &Extent::maxDurNs});
};

template <>
struct Table<Shard> {
    static constexpr const char* kName = "shard";
    static constexpr auto kColumns = std::make_tuple(
        Column{"rank", &Shard::rank},
        Column{"file", &Shard::file});
};

// clang-format on

/// Tables whose rows are of one rank each, and come in its order of time.
inline constexpr const char* kEventTables[] = {
    "kernel",     "memcpy",     "memset",   "nvtx",           "api_call",    "nccl_call", "synchronization",
    "cuda_event", "allocation", "proxy_op", "kernel_summary", "kernel_span", "counter"};

/// Name of a row type's table.
template <typename Row>
constexpr const char* tableName() noexcept {
    return Table<Row>::kName;
}

}  // namespace rankscope::store
