// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/diagnoses.h"

namespace rankscope::diagnose {
inline namespace rs503 {

const Diagnosis kTimeoutRoot{
    .id = "RS503",
    .title = "root cause behind a timeout",
    .definition = "One rank failed first, the others only wait.",
    .fix = "Look at that rank's error.",
    .needs = Needs::events,
    .hint = "The rank to fix ends first; the others wait in the framed calls until they time out.",
};

}  // namespace rs503
}  // namespace rankscope::diagnose
