// SPDX-License-Identifier: Apache-2.0
// What the job's own traffic says about its links: each communicator and each pair of neighbours is a probe that
// touches some ranks, and was as fast as its links should be, or slower.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/job/finding.h"

namespace rankscope::job {

struct UndisturbedMessage;  // collective_speed.h

struct Analysis;

/// Messages of one operation, choice and power of two of the size, over as many nodes, in groups as large: what a kink
/// slows, it slows alike.
struct LinkKind {
    store::Op op = store::Op::unknown;
    store::Algorithm algorithm = store::Algorithm::unknown;
    store::Protocol protocol = store::Protocol::unknown;
    int octave = 0;
    int nodes = 1, members = 2;
    auto operator<=>(const LinkKind&) const = default;
    /// Another operation, choice or size: nothing known slows both but the link.
    bool isUnlike(const LinkKind& other) const {
        return op != other.op || algorithm != other.algorithm || protocol != other.protocol || octave != other.octave;
    }
};

struct LinkProbe {
    int64_t communicatorId = 0;
    bool exchange = false;  // an all-to-all of experts: `slowness` is against the best of its class
    bool pair = false;      // messages from ranks[0] to ranks[1]; else all members of the communicator
    bool betweenNodes = false;
    std::vector<int> ranks;            // members; of a pair: sender, receiver
    double slowness = 1;               // median of measured over expected time
    std::map<LinkKind, double> kinds;  // the same of each kind with enough of them
    double kink = 1;                   // times that a healthy link may take because its messages are of one kind
    double busBytesPerNs = 0;          // median reached
    double peakBytesPerNs = 0;         // what the expectation rests on
    bool atLeast = false;              // that is a lower bound, and so is the slowness
    costs::Range share{1, 1};          // of the peak, that healthy links of this class reach
    double lateness = 1;  // how many times as long as at that share such messages take on healthy machines at most
    double reached = 1;   // slowness of a link that reaches what its siblings do, or healthy ones elsewhere
    double healthy = 1;   // slowness up to which it may be healthy: `reached`, and what the formulas do not know
    bool alone = true;    // the class has no other probe: only healthy links elsewhere are the measure
    size_t samples = 0;
    std::vector<EvidenceRow> rows;  // the first few of each step: a finding shows those of the step that it names

    /// Takes healthy links elsewhere as the measure: `reached` and `healthy` by `share` and `lateness`.
    void compareWithOthers();
    /// Takes the fastest of its class as the measure, as far as healthy links elsewhere are no slower. Those of another
    /// kind have no part in its kink; `alike`, the slowness of the fastest of its own kind, does.
    void compareWithSiblings(double fastest, double alike);
    /// Slowness up to which a link that has no siblings may be healthy.
    double mostHealthy() const { return kink * mostSmooth(); }
    /// The same but for a kink.
    double mostSmooth() const { return lateness / share.low; }
    /// The slowness of its kind of which it is least.
    double leastSlowness() const;
    /// Slowness up to which the link is at its ceiling, and from which on it is slow.
    double ceilingTo() const;
    double slowFrom() const;
    /// Slower than healthy links are, with every operation and size, by so much that the link has a fault.
    bool slow() const;
    /// The same, or slower than the peak by so much: enough where who holds it up is told by other evidence.
    bool maybeSlow() const;
    /// Slower than the peak's share by so much, whatever the formulas do not know of a machine: enough where a setting
    /// tells why.
    bool slowForAReason() const;
    /// As fast as healthy links are in a job's step, whatever the formulas may be off by; what is neither this nor
    /// slow() nobody can tell.
    bool atCeiling() const;
    /// Times that a repair makes it faster, at least.
    double excess() const;
    bool touches(int rank) const;
    /// Keeps `row`, of which the start is known, unless its step has `kRowsOfStep` of them. `note` is asked for what it
    /// says where it is kept.
    void keep(const Analysis& analysis, EvidenceRow row, const std::function<std::string()>& note);
    static constexpr size_t kRowsOfStep = 2;  // as many rows of evidence as a finding shows of a probe
};

struct LinkProbeThresholds {
    // Times what the share of the peak explains that healthy links reach.
    static constexpr double kSlow = costs::kSlowLink;
    // The same of a link at its ceiling: in a real step eight A100 reach 186 of the 235 GB/s of nccl-tests, 1.26 times.
    static constexpr double kAtCeiling = 1.3;
    // Of one size by one operation it may be a kink: of 44 published tables of several nodes 15 have one, of 39 of one
    // node 5, which take 1.5 to 6 times what their neighbours let expect, 3 in the median. Times kSlow that is 4.5,
    // under which nine in ten stay. All are tables of collectives: of messages between two ranks the same is assumed.
    static constexpr double kKink = 3;
};

/// All probes with enough large, undisturbed messages, expected times from the link peaks. Where those are what the job
/// reached, the fastest probes are the measure of the others. Detectors read the result, analysis.linkProbes.
std::vector<LinkProbe> probeLinks(const Analysis& analysis, const std::vector<UndisturbedMessage>& messages);

/// Groups of experts as probes of links: undisturbed all-to-alls against what their busiest rank's bytes take at peak.
/// NCCL reaches less of the peak with messages than with collectives, and how much less nobody knows, so groups are
/// compared with the best one of their class of links: `slowness` is 1 for that, and a group without another like it is
/// no probe.
std::vector<LinkProbe> exchangeProbes(const Analysis& analysis);

}  // namespace rankscope::job
