// SPDX-License-Identifier: Apache-2.0
// What several diagnoses need of a recording, as the words that say it is missing: empty where it is there, or where a
// job of this kind gives the diagnosis nothing to judge.
#pragma once

#include <initializer_list>
#include <string>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

/// Calls of the host, on every rank.
std::string withoutHostCalls(const job::Analysis& analysis);

/// A second rank to compare with, of which a job of one rank has none, and withoutOwnDevices().
std::string withoutPeerRanks(const job::Analysis& analysis);

/// Where kernels are recorded, a device for each rank.
std::string withoutOwnDevices(const job::Analysis& analysis);

/// A link peak for each group of two and more ranks with one of these roles. All roles: {}.
std::string withoutLinkPeak(const job::Analysis& analysis, std::initializer_list<facts::CommRole> roles);

/// To which communicator the communication belongs: what it is for cannot be told without.
std::string withoutCommunicators(const job::Analysis& analysis);

/// Sizes of the messages of these roles.
std::string withoutSizes(const job::Analysis& analysis, std::initializer_list<facts::CommRole> roles);

/// How long transfers take: what a rank alone sees of a collective is waiting and transfer in one.
std::string withoutTransferTimes(const job::Analysis& analysis);

/// Names of the hosts.
std::string withoutHosts(const job::Analysis& analysis);

/// More is known of the links that this communicator uses than the best that the job itself reached.
bool peakIsKnown(const job::Analysis& analysis, const facts::Communicator& communicator);

/// Any kernel of NCCL in the analysed steps.
bool communicates(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
