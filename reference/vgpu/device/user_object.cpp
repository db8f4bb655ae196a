// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/user_object.h"

#include <map>
#include <mutex>

namespace rankscope::vgpu {
namespace {

struct UserObject {
    void* pointer;
    cudaHostFn_t destroy;
    unsigned holders;
};

struct UserObjects {
    std::mutex mutex;
    std::map<uintptr_t, UserObject> objects;
    uintptr_t nextHandle = 0x600000;
};

UserObjects& userObjects() {
    static auto* only = new UserObjects;
    return *only;
}

}  // namespace

cudaUserObject_t createUserObject(void* pointer, cudaHostFn_t destroy, unsigned holders) {
    std::lock_guard guard(userObjects().mutex);
    const uintptr_t handle = userObjects().nextHandle += 0x100;
    userObjects().objects[handle] = {pointer, destroy, holders};
    return reinterpret_cast<cudaUserObject_t>(handle);
}

bool retainUserObject(cudaUserObject_t object, unsigned holders) {
    std::lock_guard guard(userObjects().mutex);
    const auto found = userObjects().objects.find(reinterpret_cast<uintptr_t>(object));
    if (found == userObjects().objects.end() || holders == 0) return false;
    found->second.holders += holders;
    return true;
}

bool releaseUserObject(cudaUserObject_t object, unsigned holders) {
    UserObject gone;
    {
        std::lock_guard guard(userObjects().mutex);
        const auto found = userObjects().objects.find(reinterpret_cast<uintptr_t>(object));
        if (found == userObjects().objects.end() || holders == 0 || holders > found->second.holders) return false;
        found->second.holders -= holders;
        if (found->second.holders > 0) return true;
        gone = found->second;
        userObjects().objects.erase(found);
    }
    gone.destroy(gone.pointer);
    return true;
}

std::shared_ptr<void> heldByGraph(cudaUserObject_t object, unsigned holders) {
    return {object, [holders](void* held) { releaseUserObject(static_cast<cudaUserObject_t>(held), holders); }};
}

}  // namespace rankscope::vgpu
