// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/model_part.h"

#include "reference/workloads/check.h"
#include "reference/workloads/expert_routing.h"
#include "reference/workloads/work_share.h"

namespace rankscope::reference {

ModelPart::ModelPart(Worker& worker, const Layout& layout)
    : m_worker(worker),
      m_tensor(worker.join(layout.tensor())),
      m_expert(worker.join(layout.expert())),
      m_sequence(worker.scenario().kind == Kind::tpSp),
      m_overlap(worker.scenario().parallel.overlap && !worker.scenario().faults.noOverlap),
      m_experts(worker.scenario().model.experts),
      m_tokensPerRank(m_experts ? tokensPerRank(routeTokens(Transformer(worker.scenario().model).tokens(), m_experts,
                                                            expertSkew(worker.scenario())),
                                                m_expert.size)
                                : std::vector<int64_t>{}),
      m_transformer(worker.scenario().model, share()) {}

LayerShare ModelPart::share() const {
    LayerShare share{.tensor = m_tensor.size, .sequence = m_sequence};
    if (!moe()) return share;
    share.experts = m_experts;
    share.localExperts = m_experts / m_expert.size;
    share.expertTokens = m_tokensPerRank[static_cast<size_t>(m_expert.rank)] * m_expert.size;
    return share;
}

std::vector<int64_t> ModelPart::denseTensors() const {
    const int64_t norm = m_transformer.norm(Kernel::layerNormBackward, 1).parameters;
    const int64_t projection = m_transformer.projection(Kernel::projectionGemmBackward, 1).parameters;
    const int64_t qkv = m_transformer.qkv(Kernel::qkvGemmBackward, 1).parameters;
    if (moe()) return {m_transformer.router(Kernel::routerGemmBackward, 1).parameters, norm, projection, qkv, norm};
    return {m_transformer.mlpDown(Kernel::mlpDownGemmBackward, 1).parameters,
            m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1).parameters,
            norm,
            projection,
            qkv,
            norm};
}

std::vector<int64_t> ModelPart::expertTensors() const {
    if (!moe()) return {};
    return {m_transformer.mlpDown(Kernel::mlpDownGemmBackward, 1).parameters,
            m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1).parameters};
}

int64_t ModelPart::workBytes() const {
    const int64_t elements = (m_sequence ? m_transformer.activationElements() : 0) +
                             (tokensTravel() ? share().expertTokens * m_worker.scenario().model.hidden : 0);
    return elements * dtypeBytes(dtype());
}

void ModelPart::allocate() {
    if (m_sequence) m_whole = m_worker.allocate(m_transformer.activationElements() * dtypeBytes(dtype()));
    if (!tokensTravel()) return;
    m_expertTokens = m_worker.allocate(share().expertTokens * m_worker.scenario().model.hidden * dtypeBytes(dtype()));
    if (!m_tensor.alone() || m_worker.scenario().parallel.pp > 1) return;
    m_tokenEnds = m_worker.allocateTable(m_tokensPerRank.size());
    uint64_t end = 0;
    for (size_t rank = 0; rank < m_tokensPerRank.size(); ++rank)
        m_tokenEnds[rank] = end += static_cast<uint64_t>(m_tokensPerRank[rank] * m_worker.scenario().model.hidden);
}

KernelTask ModelPart::task(TaskOp op, void* data, uint32_t micro) const {
    KernelTask task = m_worker.task(op, dtype(), data);
    const auto elements = static_cast<uint64_t>(activationElements());
    task.first = task.dataOrigin = task.chunkOrigin = m_sequence ? elements * static_cast<uint64_t>(m_tensor.rank) : 0;
    task.count = task.chunkLength = elements;
    task.end = task.first + elements;
    // Sums over the tensor group and sends between stages move the ends of an activation or of the group's parts,
    // tokens on their way to experts the ends of theirs: values that go through both are known at the ends of the whole
    // only.
    if (m_sequence && tokensTravel()) {
        task.chunkOrigin = 0;
        task.chunkLength = task.end = static_cast<uint64_t>(m_transformer.activationElements());
    }
    if (m_tokenEnds) {
        task.chunkEnds = m_tokenEnds;
        task.chunks = m_tokensPerRank.size();
    }
    task.micro = micro;
    task.layers = maps();
    task.rank = 0;
    task.ranks = 1;
    return task;
}

/// A map on all tokens, or on those of this rank's experts; what it stores is this rank's share of the tensor group's
/// sum.
KernelTask ModelPart::mapTask(TaskOp op, void* data, int64_t elements, int map, uint32_t micro) const {
    const bool onExperts = tokensTravel() && data == m_expertTokens;
    KernelTask task = this->task(op, data, micro);
    task.first = task.dataOrigin = task.chunkOrigin = 0;
    task.count = task.end = static_cast<uint64_t>(elements);
    task.chunkLength = static_cast<uint64_t>(onExperts                       ? elements / m_expert.size
                                             : m_sequence && !tokensTravel() ? elements / m_tensor.size
                                                                             : elements);
    if (onExperts) task.chunks = 0;
    task.layer = static_cast<uint32_t>(map);
    task.rank = static_cast<uint32_t>(m_tensor.rank);
    task.ranks = static_cast<uint32_t>(m_tensor.size);
    return task;
}

void* ModelPart::enter(void* activation) {
    if (!m_sequence) return activation;
    m_worker.startAfterCompute(m_tensor);
    m_worker.allGather(m_tensor, activation, m_whole, activationElements(), dtype());
    m_worker.computeAfter(m_tensor);
    return m_whole;
}

void ModelPart::startLeave(void* activation, void* whole) {
    m_worker.startAfterCompute(m_tensor);
    if (m_sequence)
        m_worker.reduceScatter(m_tensor, whole, activation, activationElements(), dtype());
    else
        m_worker.allReduce(m_tensor, activation, activationElements(), dtype());
}

void ModelPart::finishLeave() {
    m_worker.computeAfter(m_tensor);
}

void ModelPart::dispatch(void* whole) {
    exchangeTokens(whole, true);
}
void ModelPart::combine(void* whole) {
    exchangeTokens(whole, false);
}

void ModelPart::exchangeTokens(void* whole, bool toExperts) {
    if (!tokensTravel()) return;
    // As torch.distributed.all_to_all_single does it with sizes of its own: one group of sends and receives
    // (c10d/NCCLUtils, all2all_single_unequal_split).
    const int64_t hidden = m_worker.scenario().model.hidden;
    const int64_t elementBytes = dtypeBytes(dtype());
    const int64_t mine = m_tokensPerRank[static_cast<size_t>(m_expert.rank)] * hidden;
    std::vector<Message> messages;
    int64_t offset = 0;
    for (int peer = 0; peer < m_expert.size; ++peer) {
        const int64_t theirs = m_tokensPerRank[static_cast<size_t>(peer)] * hidden;
        void* const tokens = m_worker.at(whole, offset * elementBytes);
        void* const atExperts = m_worker.at(m_expertTokens, peer * mine * elementBytes);
        offset += theirs;
        if (theirs)
            messages.push_back({toExperts ? Message::Type::send : Message::Type::receive, tokens, theirs, peer});
        if (mine) messages.push_back({toExperts ? Message::Type::receive : Message::Type::send, atExperts, mine, peer});
    }
    m_worker.startAfterCompute(m_expert);
    m_worker.exchange(m_expert, messages, dtype());
    m_worker.computeAfter(m_expert);
}

void ModelPart::launchFinishing(const LayerKernel& kernel, Gradients* gradients) {
    if (!gradients) return m_worker.launch(kernel);
    m_worker.launch(kernel, gradients->nextTask(kernel.parameters));
    gradients->ready(kernel.parameters, m_overlap);
}

void ModelPart::forward(int layer, void* activation, uint32_t micro) {
    attentionForward(layer, activation, micro);
    mlpForward(layer, activation, micro);
}

void ModelPart::attentionForward(int layer, void* activation, uint32_t micro) {
    m_worker.launch(m_transformer.norm(Kernel::layerNormForward, 1));
    void* whole = enter(activation);
    m_worker.launch(m_transformer.qkv(Kernel::qkvGemmForward, 1));
    m_worker.launch(m_transformer.attention(Kernel::attentionForward, 1));
    m_worker.launch(m_transformer.projection(Kernel::projectionGemmForward, 1),
                    mapTask(TaskOp::forwardLayer, whole, m_transformer.activationElements(), 2 * layer, micro));
    startLeave(activation, whole);
    finishLeave();
}

void ModelPart::mlpForward(int layer, void* activation, uint32_t micro) {
    m_worker.launch(m_transformer.norm(Kernel::layerNormForward, 1));
    void* whole = enter(activation);
    void* work = whole;
    int64_t elements = m_transformer.activationElements();
    if (moe()) {
        m_worker.launch(m_transformer.router(Kernel::routerGemmForward, 1));
        m_worker.launch(m_transformer.permute(Kernel::permuteTokens));
        dispatch(whole);
        work = expertTokens(whole);
        elements = share().expertTokens * m_worker.scenario().model.hidden;
    }
    m_worker.launch(m_transformer.mlpUp(Kernel::mlpUpGemmForward, 1));
    m_worker.launch(m_transformer.mlpDown(Kernel::mlpDownGemmForward, 1),
                    mapTask(TaskOp::forwardLayer, work, elements, 2 * layer + 1, micro));
    if (moe()) {
        combine(whole);
        m_worker.launch(m_transformer.permute(Kernel::unpermuteTokens));
    }
    startLeave(activation, whole);
    finishLeave();
}

void ModelPart::backward(int layer, void* gradient, uint32_t micro, Gradients* dense, Gradients* experts) {
    mlpBackward(layer, gradient, micro, dense, experts);
    attentionBackward(layer, gradient, micro, dense);
}

// Frameworks compute the gradient of a linear layer's input before that of its weights; Megatron-LM sums the former
// over the tensor group behind the latter (megatron/core/tensor_parallel/layers.py,
// LinearWithGradAccumulationAndAsyncCommunication).

void ModelPart::mlpBackward(int layer, void* gradient, uint32_t micro, Gradients* dense, Gradients* experts) {
    void* whole = enter(gradient);
    if (moe()) {
        m_worker.launch(m_transformer.permute(Kernel::unpermuteTokens));
        dispatch(whole);
        launchFinishing(m_transformer.mlpDown(Kernel::mlpDownGemmBackward, 2), experts);
        m_worker.launch(m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1),
                        mapTask(TaskOp::backwardLayer, expertTokens(whole),
                                share().expertTokens * m_worker.scenario().model.hidden, 2 * layer + 1, micro));
        launchFinishing(m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1), experts);
        combine(whole);
        m_worker.launch(m_transformer.permute(Kernel::permuteTokens));
        startLeave(gradient, whole);
        if (!m_overlap) finishLeave();
        launchFinishing(m_transformer.router(Kernel::routerGemmBackward, 2), dense);
    } else {
        launchFinishing(m_transformer.mlpDown(Kernel::mlpDownGemmBackward, 2), dense);
        m_worker.launch(
            m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1),
            mapTask(TaskOp::backwardLayer, whole, m_transformer.activationElements(), 2 * layer + 1, micro));
        startLeave(gradient, whole);
        if (!m_overlap) finishLeave();
        launchFinishing(m_transformer.mlpUp(Kernel::mlpUpGemmBackward, 1), dense);
    }
    if (m_overlap) finishLeave();
    launchFinishing(m_transformer.norm(Kernel::layerNormBackward, 2), dense);
}

void ModelPart::attentionBackward(int layer, void* gradient, uint32_t micro, Gradients* dense) {
    void* whole = enter(gradient);
    launchFinishing(m_transformer.projection(Kernel::projectionGemmBackward, 2), dense);
    m_worker.launch(m_transformer.attention(Kernel::attentionBackward, 2));
    m_worker.launch(m_transformer.qkv(Kernel::qkvGemmBackward, 1),
                    mapTask(TaskOp::backwardLayer, whole, m_transformer.activationElements(), 2 * layer, micro));
    startLeave(gradient, whole);
    if (!m_overlap) finishLeave();
    launchFinishing(m_transformer.qkv(Kernel::qkvGemmBackward, 1), dense);
    if (m_overlap) finishLeave();
    launchFinishing(m_transformer.norm(Kernel::layerNormBackward, 2), dense);
}

}  // namespace rankscope::reference
