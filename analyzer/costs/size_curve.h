// SPDX-License-Identifier: Apache-2.0
// Tells what a message takes from the sizes that were measured, of a table or of a job's own messages: at them, between
// them and a little beyond, with the error that leaving sizes out shows; and which sizes are slower than they should.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/facts/statistics.h"

namespace rankscope::costs {

/// Holds what one size was measured to take.
struct SizedTime {
    double bytes = 0;
    double ns = 0;
    double error = 0;  // share of ns that measuring it again may differ by
};

/// Holds a size that takes markedly longer than its neighbours let expect.
struct Kink {
    double bytes = 0;
    double ns = 0;
    double smoothNs = 0;      // what it would take on a smooth curve, and no more than that larger size
    double insteadBytes = 0;  // the nearest larger size that is markedly faster, else that is no kink
    double insteadNs = 0;

    double times() const { return ns / smoothNs; }
    bool operator==(const Kink&) const = default;
};

class SizeCurve {
  public:
    SizeCurve() = default;
    /// Takes points in any order, of positive sizes and times. Sizes within kAlike count as one.
    explicit SizeCurve(std::vector<SizedTime> points);

    /// Returns the time, ns. Between sizes it is the middle of three readings of those around: the line through two
    /// (Hockney), their power law, and a cubic in logarithms; beyond them what the line and the power law allow between
    /// constant and proportional to the bytes. The interval is what this errs at the nearest sizes when each is left
    /// out, in proportion to the gaps (kWorldError where there are too few). Kinks count at their own sizes alone:
    /// beside them the interval reaches up to them. nullopt without points, and beyond one size or several alike.
    std::optional<facts::Estimate> ns(double bytes) const;

    const std::vector<Kink>& kinks() const { return m_kinks; }
    bool isKink(double bytes) const { return kinkAt(bytes) != nullptr; }
    const std::vector<SizedTime>& points() const { return m_points; }
    double smallestBytes() const { return m_points.empty() ? 0 : m_points.front().bytes; }
    double largestBytes() const { return m_points.empty() ? 0 : m_points.back().bytes; }

    /// Sizes closer than this count as one, unless their times differ as a kink's: a slope between them is their noise.
    static constexpr double kAlike = 1.05;
    /// Sizes that differ by less than this factor do not tell latency from bandwidth.
    static constexpr double kSmallestRange = 4;
    /// Of the world's tables (reference/README.md) nine in ten sizes lie within this share of what the others say,
    /// kinks left out, over a gap of a factor kWorldGap: what a curve of few sizes is taken to err.
    static constexpr double kWorldError = 0.15;
    static constexpr double kWorldGap = 4;
    /// The sizes around that tell the error, which is kBeyond times what the worst of them is missed by. The largest of
    /// four holds a fifth one in four of five cases; 1.6 times it holds 95 in 100 sizes of the world's tables of one
    /// node, and 91 of those of several.
    static constexpr size_t kNeighbours = 4;
    static constexpr double kBeyond = 1.6;
    /// A size is a kink that takes this many times what a larger one takes, or kSharpKink times the curve through its
    /// neighbours. The curve misses one size in a hundred of smooth tables by a third, and a change of algorithm may
    /// put twice between two sizes, but no larger message takes less than a smaller one by choice.
    static constexpr double kKink = 1.5;
    static constexpr double kSharpKink = 2;

  private:
    /// Holds a point of the smooth curve in logarithms.
    struct Support {
        double x = 0, y = 0;
        double error = 0;  // of the measurement
        double left = 0;   // what the others miss it by when it is left out; < 0: too few others
        double gap = 0;    // of these others around it
    };
    struct Bracket;

    void findKinks();
    void leaveEachOut();
    Bracket bracket(double x, size_t skip) const;
    double smooth(const Bracket& around, double x) const;
    double errorAt(const Bracket& around, double x) const;
    const Kink* kinkAt(double bytes) const;

    std::vector<SizedTime> m_points;  // by bytes
    std::vector<Support> m_support;   // those that are no kinks
    std::vector<Kink> m_kinks;
};

}  // namespace rankscope::costs
