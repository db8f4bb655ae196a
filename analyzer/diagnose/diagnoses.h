// SPDX-License-Identifier: Apache-2.0
// Every diagnosis by name, for those who mean one of them.
#pragma once

#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::diagnose {

extern const Diagnosis kBubble;                // RS101
extern const Diagnosis kStageImbalance;        // RS102
extern const Diagnosis kExposedP2p;            // RS103
extern const Diagnosis kOverlap;               // RS201
extern const Diagnosis kSmallMessages;         // RS202
extern const Diagnosis kSaturation;            // RS203
extern const Diagnosis kUnderUsedLink;         // RS204
extern const Diagnosis kAlgorithm;             // RS205
extern const Diagnosis kRedundant;             // RS206
extern const Diagnosis kTensorParallelSpan;    // RS207
extern const Diagnosis kSlowLink;              // RS208
extern const Diagnosis kContention;            // RS209
extern const Diagnosis kFullPrecision;         // RS210
extern const Diagnosis kStraggler;             // RS301
extern const Diagnosis kStragglerNode;         // RS302
extern const Diagnosis kTransient;             // RS303
extern const Diagnosis kUnevenWork;            // RS304
extern const Diagnosis kLaunchBound;           // RS401
extern const Diagnosis kSynchronisation;       // RS402
extern const Diagnosis kInput;                 // RS403
extern const Diagnosis kAllocator;             // RS404
extern const Diagnosis kPageable;              // RS405
extern const Diagnosis kStarved;               // RS406
extern const Diagnosis kMissingRank;           // RS501
extern const Diagnosis kMismatchedCollective;  // RS502
extern const Diagnosis kTimeoutRoot;           // RS503

}  // namespace rankscope::diagnose
