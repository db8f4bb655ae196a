// SPDX-License-Identifier: Apache-2.0
// Hands rank 0's NCCL id to the other ranks by a file, so that a workload needs neither MPI nor a store server. All
// ranks must see one folder: RANKSCOPE_WORKLOAD_STORE, else TMPDIR, else /tmp.
#pragma once

#include <nccl.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "reference/workloads/identity.h"

namespace rankscope::reference {

struct RendezvousError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Rendezvous {
  public:
    explicit Rendezvous(const Identity& identity);
    /// Removes rank 0's file: by then every rank has read it, or the job is lost anyway.
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    /// Rank 0 passes its id and gets it back; the others wait for it. Throws RendezvousError after `timeout`.
    ncclUniqueId exchange(const ncclUniqueId* own, std::chrono::seconds timeout);

  private:
    void publish(const ncclUniqueId& id) const;
    bool tryRead(ncclUniqueId& id) const;

    const Identity& m_identity;
    std::string m_path;
};

}  // namespace rankscope::reference
