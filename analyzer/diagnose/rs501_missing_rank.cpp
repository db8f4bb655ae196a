// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/diagnoses.h"

namespace rankscope::diagnose {
inline namespace rs501 {

const Diagnosis kMissingRank{
    .id = "RS501",
    .title = "missing rank",
    .definition = "All members but some entered a collective.",
    .fix = "Look at the rank that is missing.",
    .needs = Needs::events,
    .hint = "One rank's line ends or never enters where all others wait in the framed collective.",
};

}  // namespace rs501
}  // namespace rankscope::diagnose
