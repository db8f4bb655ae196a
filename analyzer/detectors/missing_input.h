// SPDX-License-Identifier: Apache-2.0
// What several diagnoses need of a recording, as the words that say it is missing: empty where it is there, or where a
// job of this kind gives the diagnosis nothing to judge.
#pragma once

#include <initializer_list>
#include <string>

#include "analyzer/detectors/analysis.h"

namespace rankscope::analyzer {

/// Calls of the host, on every rank.
std::string withoutHostCalls(const Analysis& analysis);

/// A second rank to compare with; of a job of one rank there is none.
std::string withoutPeerRanks(const Analysis& analysis);

/// A link peak for each group of two and more ranks with one of these roles. All roles: {}.
std::string withoutLinkPeak(const Analysis& analysis, std::initializer_list<CommRole> roles);

/// To which communicator the communication belongs: what it is for cannot be told without.
std::string withoutCommunicators(const Analysis& analysis);

/// Sizes of the messages of these roles.
std::string withoutSizes(const Analysis& analysis, std::initializer_list<CommRole> roles);

/// How long transfers take: what a rank alone sees of a collective is waiting and transfer in one.
std::string withoutTransferTimes(const Analysis& analysis);

/// Names of the hosts.
std::string withoutHosts(const Analysis& analysis);

/// More is known of the links that this communicator uses than the best that the job itself reached.
bool peakIsKnown(const Analysis& analysis, const Communicator& communicator);

/// Any kernel of NCCL in the analysed steps.
bool communicates(const Analysis& analysis);

}  // namespace rankscope::analyzer
