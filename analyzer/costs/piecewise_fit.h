// SPDX-License-Identifier: Apache-2.0
// Transfer time against size as straight pieces, alpha + beta x bytes each (Hockney, Parallel Computing 20(3), 1994),
// with what they may be trusted for.
#pragma once

#include <string>
#include <vector>

namespace rankscope::costs {

struct SizedTime {
    double bytes = 0;
    double timeNs = 0;
};

struct FitThresholds {
    static constexpr int kFewestSamples = 6;     // fewer say nothing about their own scatter
    static constexpr int kFewestSizes = 3;       // through two points every line goes: the third can contradict
    static constexpr double kSmallestRange = 4;  // sizes that hardly differ do not tell start-up from bandwidth
    static constexpr double kExtrapolation =
        2;  // NCCL changes chunks and channels with the size: beyond this factor of the sizes seen nothing is said
    static constexpr double kLargestResidual =
        0.25;  // mean deviation of the sizes' medians from the pieces: above, time does not follow the size
    static constexpr size_t kMostPieces = 4;
};

/// Holds from fromBytes up to the next piece.
struct FitPiece {
    double fromBytes = 0;
    double alphaNs = 0;
    double betaNsPerByte = 0;
};

struct PiecewiseFit {
    std::vector<FitPiece> pieces;  // by fromBytes
    int samples = 0;
    int sizes = 0;
    double smallestBytes = 0;
    double largestBytes = 0;
    double residual = 0;  // mean relative deviation of the sizes' median times from the fit
    double scatter = 0;   // median relative deviation of single samples from the median of their size
    std::string refused;  // why there is no fit; empty when there is one

    bool holds() const { return refused.empty(); }
    /// True between the sizes seen and up to kExtrapolation beyond.
    bool holdsAt(double bytes) const;
    double timeNs(double bytes) const;
};

/// Medians per size, then as many pieces as the Bayesian information criterion pays for (Schwarz 1978), each by least
/// squares of relative errors, alpha and beta not negative. Thin data are refused with the reason.
PiecewiseFit fitPieces(const std::vector<SizedTime>& samples);

}  // namespace rankscope::costs
