// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/diagnoses.h"

namespace rankscope::diagnose {
inline namespace rs502 {

const Diagnosis kMismatchedCollective{
    .id = "RS502",
    .title = "mismatched collective",
    .definition = "Members disagree on op, size, dtype, root or order.",
    .fix = "Compare both sides at the first divergence.",
    .needs = Needs::events,
    .hint = "The framed calls should be the same one: two ranks disagree on what to communicate.",
};

}  // namespace rs502
}  // namespace rankscope::diagnose
