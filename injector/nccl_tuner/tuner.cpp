// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_tuner/tuner.h"

#include <dlfcn.h>

#include "injector/text.h"

namespace rankscope::injector {
namespace {

using namespace tuner_abi;

bool allows(int64_t wanted, int64_t is) noexcept {
    return wanted == -1 || wanted == is;
}

/// Into the capture file, when the job runs under the injector: it shows this function (nccl_plugin/tuner_status.cpp).
void tellInjector(int status, const char* message) noexcept {
    using Tell = void (*)(int status, const char* message);
    static std::atomic<Tell> known{nullptr};
    Tell tell = known.load(std::memory_order_relaxed);
    if (tell == nullptr) {
        tell = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "rankscopeTellTuner"));
        if (tell == nullptr) return;
        known.store(tell, std::memory_order_relaxed);
    }
    tell(status, message);
}

}  // namespace

void Tuner::open(int version, uint64_t commId, size_t ranks, size_t nodes, Logger logger, void* nvlDomains,
                 void* constants) noexcept {
    m_logger = logger;
    m_table = &jobsTunerTable(logger);
    m_ranks = static_cast<int64_t>(ranks);
    m_nodes = static_cast<int64_t>(nodes);
    for (size_t i = 0; i < m_table->count; ++i)
        if (allows(m_table->rows[i].nodes, m_nodes) && allows(m_table->rows[i].ranks, m_ranks))
            m_rows[m_count++] = static_cast<uint16_t>(i);
    m_chained.open(version, commId, ranks, nodes, logger, nvlDomains, constants);

    static std::atomic<bool> told{false};
    if (told.exchange(true)) return;
    FixedText<160> message;
    message.append("tuner plugin v")
        .append(static_cast<int64_t>(version))
        .append(", ")
        .append(static_cast<int64_t>(m_table->count))
        .append(" rows");
    if (m_table->skippedLines > 0)
        message.append(", ").append(static_cast<int64_t>(m_table->skippedLines)).append(" wrong lines skipped");
    tellInjector(m_table->count > 0 ? 1 : 2, message.c_str());
}

const TunerRow* Tuner::match(const TunerQuestion& q) const noexcept {
    const auto bytes = static_cast<int64_t>(q.bytes);
    for (size_t i = 0; i < m_count; ++i) {
        const TunerRow& row = m_table->rows[m_rows[i]];
        if (row.function == q.function && row.minBytes <= bytes && (row.maxBytes == -1 || bytes <= row.maxBytes) &&
            allows(row.pipeOps, q.pipeOps) && allows(row.registered, q.registered != 0 ? 1 : 0))
            return &row;
    }
    return nullptr;
}

void Tuner::choose(const TunerQuestion& q) noexcept {
    const TunerRow* row = m_table == nullptr ? nullptr : match(q);
    const bool forced = row != nullptr && (q.table != nullptr ? force(*row, q) : nameChoice(*row, q));
    if (row != nullptr) tellOnce(*row, q, forced);
    if (!forced) m_chained.ask(q);
}

bool Tuner::force(const TunerRow& row, const TunerQuestion& q) const noexcept {
    float* chosen = q.entry(row.algorithm, row.protocol);
    if (chosen == nullptr) return false;
    // The first of the cheapest wins: nothing else may cost nothing.
    for (int a = 0; a < q.algorithms; ++a)
        for (int p = 0; p < q.protocols; ++p)
            if (float* other = q.entry(a, p); other != nullptr && *other == 0) *other = 1e-30f;
    *chosen = 0;
    if (row.channels != -1 && q.channels != nullptr) *q.channels = row.channels;
    return true;
}

/// Version 2 takes our word for it. What it does not tell to exist is not named: LL128 where the machine does not have
/// it corrupts data, and pat is newer than this interface.
bool Tuner::nameChoice(const TunerRow& row, const TunerQuestion& q) const noexcept {
    if (q.algorithm == nullptr || q.protocol == nullptr || row.protocol == ll128 || row.algorithm == pat) return false;
    if (row.algorithm == nvls && (q.nvls == 0 || (m_nodes > 1 && q.collNet == 0))) return false;
    if (row.algorithm == nvlsTree && (q.nvls == 0 || m_nodes < 2)) return false;
    if ((row.algorithm == collnetDirect || row.algorithm == collnetChain) && (q.collNet == 0 || m_nodes < 2))
        return false;
    *q.algorithm = row.algorithm;
    *q.protocol = row.protocol;
    if (row.channels != -1 && q.channels != nullptr) *q.channels = row.channels;
    return true;
}

void Tuner::tellOnce(const TunerRow& row, const TunerQuestion& q, bool forced) noexcept {
    const auto index = static_cast<size_t>(&row - m_table->rows);
    const uint8_t bit = forced ? 1 : 2;
    if ((m_told[index].load(std::memory_order_relaxed) & bit) != 0 || (m_told[index].fetch_or(bit) & bit) != 0) return;
    FixedText<320> message;
    message.append("row ")
        .append(static_cast<int64_t>(index + 1))
        .append(": ")
        .append(functionName(q.function))
        .append(" of ")
        .append(static_cast<int64_t>(q.bytes));
    message.append(" bytes, ")
        .append(m_ranks)
        .append(" ranks on ")
        .append(m_nodes)
        .append(m_nodes == 1 ? " node: " : " nodes: ");
    message.append(algorithmName(row.algorithm)).append(" ").append(protocolName(row.protocol));
    if (!forced) message.append(", which NCCL does not have here: left to NCCL");
    if (m_logger != nullptr)
        m_logger(forced ? kLogInfo : kLogWarning, kLogTuning, "rankscope", 0, "rankscope tuner: %s", message.c_str());
    if (!forced) tellInjector(1, message.c_str());
}

}  // namespace rankscope::injector
