// SPDX-License-Identifier: Apache-2.0
// Every diagnosis by name, for those who mean one of them. Each has a namespace of its own for its thresholds and
// helpers, so that several can be compiled as one.
#pragma once

#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::diagnose {

// clang-format off
inline namespace rs101 { extern const Diagnosis kBubble; }
inline namespace rs102 { extern const Diagnosis kStageImbalance; }
inline namespace rs103 { extern const Diagnosis kExposedP2p; }
inline namespace rs201 { extern const Diagnosis kOverlap; }
inline namespace rs202 { extern const Diagnosis kSmallMessages; }
inline namespace rs203 { extern const Diagnosis kSaturation; }
inline namespace rs204 { extern const Diagnosis kUnderUsedLink; }
inline namespace rs205 { extern const Diagnosis kAlgorithm; }
inline namespace rs206 { extern const Diagnosis kRedundant; }
inline namespace rs207 { extern const Diagnosis kTensorParallelSpan; }
inline namespace rs208 { extern const Diagnosis kSlowLink; }
inline namespace rs209 { extern const Diagnosis kContention; }
inline namespace rs210 { extern const Diagnosis kFullPrecision; }
inline namespace rs301 { extern const Diagnosis kStraggler; }
inline namespace rs302 { extern const Diagnosis kStragglerNode; }
inline namespace rs303 { extern const Diagnosis kTransient; }
inline namespace rs304 { extern const Diagnosis kUnevenWork; }
inline namespace rs305 { extern const Diagnosis kSlowerKernels; }
inline namespace rs401 { extern const Diagnosis kLaunchBound; }
inline namespace rs402 { extern const Diagnosis kSynchronisation; }
inline namespace rs403 { extern const Diagnosis kInput; }
inline namespace rs404 { extern const Diagnosis kAllocator; }
inline namespace rs405 { extern const Diagnosis kPageable; }
inline namespace rs406 { extern const Diagnosis kStarved; }
inline namespace rs501 { extern const Diagnosis kMissingRank; }
inline namespace rs502 { extern const Diagnosis kMismatchedCollective; }
inline namespace rs503 { extern const Diagnosis kTimeoutRoot; }
// clang-format on

}  // namespace rankscope::diagnose
