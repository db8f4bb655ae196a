// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/user_object.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 400;

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy,
                                           unsigned holders, unsigned flags) {
    RANKSCOPE_RUNTIME_CALL("cudaUserObjectCreate", cudaUserObjectCreate_v11030, kQuickNs);
    if (!object || !destroy || holders == 0 || flags != cudaUserObjectNoDestructorSync)
        return call.end(cudaErrorInvalidValue);
    *object = createUserObject(pointer, destroy, holders);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaUserObjectRetain(cudaUserObject_t object, unsigned holders) {
    RANKSCOPE_RUNTIME_CALL("cudaUserObjectRetain", cudaUserObjectRetain_v11030, kQuickNs);
    return call.end(retainUserObject(object, holders) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaUserObjectRelease(cudaUserObject_t object, unsigned holders) {
    RANKSCOPE_RUNTIME_CALL("cudaUserObjectRelease", cudaUserObjectRelease_v11030, kQuickNs);
    return call.end(releaseUserObject(object, holders) ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
