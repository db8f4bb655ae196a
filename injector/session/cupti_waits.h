// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/cupti/activity_decoder.h"
#include "injector/cupti/cupti_api.h"

namespace rankscope::injector::cupti {

/// Waits and events of the job, as CUPTI calls back from the calls themselves. Its records of them
/// (CUPTI_ACTIVITY_KIND_SYNCHRONIZATION and CUDA_EVENT) say the same, but make CUPTI look at every call of the job: a
/// step of 280 tiny kernels took 30 % longer for each of the two on an H100; what callbacks cost could not be measured.
///
/// Not thread-safe, but for the callbacks themselves: CUPTI asks its subscriber to take turns.
class WaitCallbacks {
  public:
    /// Streams are numbered by `decoder`, as in CUPTI's records.
    explicit constexpr WaitCallbacks(ActivityDecoder& decoder) noexcept : m_decoder(decoder) {}

    /// Takes the one subscriber's place of a process. Returns CUPTI's result; `holder` (of `holderBytes`, may be empty
    /// text) gets the name of who has it already.
    int subscribe(const Api& api, char* holder, size_t holderBytes) noexcept;
    /// Whether this CUPTI can call back for single calls and number streams, and we have the place.
    bool canCallBack() const noexcept;
    /// False: CUPTI refuses a call, or we are not subscribed.
    bool enable() noexcept;
    void unsubscribe() noexcept;

  private:
    static void onCall(void* self, int domain, uint32_t callbackId, const void* data) noexcept;

    const Api* m_api = nullptr;
    ActivityDecoder& m_decoder;
    void* m_subscriber = nullptr;
};

}  // namespace rankscope::injector::cupti
