// SPDX-License-Identifier: Apache-2.0
// Watches every operator of PyTorch and tells the virtual GPUs what it does.
#include <ATen/record_function.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "reference/vgpu/engine/operator_api.h"
#include "reference/vgpu/frameworks/torch/operator_info.h"
#include "reference/vgpu/frameworks/torch/tensors.h"
#include "reference/vgpu/frameworks/torch/values.h"
#include "reference/vgpu/frameworks/torch/work.h"

namespace rankscope::torch_operators {
namespace {

RankscopeOperatorHooks g_hooks{};
thread_local std::vector<Call*> t_calls;  ///< from the outermost on

struct Watched : at::ObserverContext {
    Call call;
};

/// True if the operator works on a device of ours; those of subclasses written in Python are seen again inside.
bool concernsUs(c10::ArrayRef<c10::IValue> arguments) {
    bool isOnDevice = false, isWrapped = false;
    for (const c10::IValue& argument : arguments) {
        if (argument.isDevice() && argument.toDevice().is_cuda()) isOnDevice = true;
        forEachTensor(argument, [&](const at::Tensor& tensor) {
            isOnDevice |= tensor.is_cuda();
            isWrapped |= isWrapper(tensor);
        });
    }
    return isOnDevice && !isWrapped;
}

/// What the job reads back may be wrong from here on, which must not end it.
void sayOnce(const OperatorInfo& info, const std::exception& error) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
        std::fprintf(stderr, "rankscope virtual GPUs: values of %s are not computed: %.200s\n", info.name.c_str(),
                     error.what());
}

std::unique_ptr<at::ObserverContext> operatorBegins(const at::RecordFunction& function) {
    const OperatorInfo* info = infoOf(function);
    if (!info || info->isQuiet || !concernsUs(function.inputs())) return nullptr;
    auto watched = std::make_unique<Watched>();
    Call& call = watched->call;
    call.info = info;
    call.arguments.assign(function.inputs().begin(), function.inputs().end());
    call.isOutermost = t_calls.empty();
    for (const Call* above : t_calls) call.isCovered |= above->isComputed;
    try {
        call.work = workOfArguments(*info, call.arguments);
    } catch (const std::exception&) {
        return nullptr;
    }
    if (!info->isView && call.isOutermost) g_hooks.hostWork(g_hooks.operatorNs);
    g_hooks.beginOperator(info->name.c_str(), &call.work);
    t_calls.push_back(&call);
    try {
        prepareValues(call, g_hooks);
    } catch (const std::exception& error) {
        sayOnce(*info, error);
    }
    return watched;
}

void operatorEnds(const at::RecordFunction& function, at::ObserverContext* context) {
    if (!context) return;
    Call& call = static_cast<Watched*>(context)->call;
    t_calls.pop_back();
    try {
        addResults(call.work, *call.info, call.arguments, function.outputs());
    } catch (const std::exception&) {  // priced by its arguments
    }
    g_hooks.endOperator(&call.work);
    try {
        if (leaveValues(call, function.outputs(), g_hooks) || call.hasComputedParts)
            for (Call* above : t_calls) above->hasComputedParts = true;
    } catch (const std::exception& error) {
        sayOnce(*call.info, error);
    }
}

}  // namespace
}  // namespace rankscope::torch_operators

extern "C" __attribute__((visibility("default"))) int rankscopeInstallOperators(const RankscopeOperatorHooks* hooks) {
    using namespace rankscope::torch_operators;
    if (hooks->version != RANKSCOPE_OPERATOR_API) return 0;
    g_hooks = *hooks;
    // Not autograd's nodes: whoever looks at a node's gradients keeps them alive, and then they are copied.
    at::addGlobalCallback(at::RecordFunctionCallback(operatorBegins, operatorEnds)
                              .needsInputs(true)
                              .needsOutputs(true)
                              .scopes({at::RecordScope::FUNCTION}));
    return 1;
}
