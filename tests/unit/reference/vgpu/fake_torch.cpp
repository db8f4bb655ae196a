// SPDX-License-Identifier: Apache-2.0
// Stands for PyTorch's library and for the one that knows its operators: it keeps what the virtual GPUs give the
// latter.
#include "reference/vgpu/engine/operator_api.h"

extern "C" {

const RankscopeOperatorHooks* givenHooks = nullptr;

int rankscopeInstallOperators(const RankscopeOperatorHooks* hooks) {
    givenHooks = hooks;
    return hooks->version == RANKSCOPE_OPERATOR_API;
}
}
