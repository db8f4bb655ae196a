// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// What a Speed edit makes faster. One of kernels (of ranks, of a name), or transfers (of a communicator, a class of
/// links, the links of ranks).
struct SpeedOf {
    std::vector<int> ranks;  // kernels, or links with `links` "rank"
    std::string kernel;      // name, with * for any characters; empty: all kernels
    std::optional<int64_t> communicator;
    std::string links;      // "": none; "intra", "inter", "rank": every exchange that a rank of `ranks` takes part in
    bool upToPeak = false;  // no transfer gets faster than the configured links give
};

/// Kernels take 1 / factor of their time. Of a transfer the start-up time (alpha of the fit, or of the configured peak)
/// stays, the rest becomes 1 / factor.
class Speed : public Edit {
  public:
    Speed(SpeedOf what, double factor) : m_what(std::move(what)), m_factor(factor) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    void kernels(replay::TaskGraph& graph, const job::Analysis& analysis) const;
    void transfers(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const;

    SpeedOf m_what;
    double m_factor;
};

/// Transfers without their start-up time, without their bytes' time, or without any.
class IdealNetwork : public Edit {
  public:
    IdealNetwork(bool noLatency, bool noBytes) : m_noLatency(noLatency), m_noBytes(noBytes) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    bool m_noLatency;
    bool m_noBytes;
};

/// Transfers of gradients, or of one communicator, with `factor` of their bytes.
class Volume : public Edit {
  public:
    /// `communicator`: only its; else all that carry gradients. `onlyFullPrecision`: only float32 ones.
    Volume(double factor, std::optional<int64_t> communicator, bool onlyFullPrecision)
        : m_factor(factor), m_communicator(communicator), m_onlyFullPrecision(onlyFullPrecision) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    double m_factor;
    std::optional<int64_t> m_communicator;
    bool m_onlyFullPrecision;
};

std::unique_ptr<Edit> parseSpeed(EditArguments& arguments);
std::unique_ptr<Edit> parseNetwork(EditArguments& arguments);
std::unique_ptr<Edit> parseBytes(EditArguments& arguments);
std::unique_ptr<Edit> parseGradients(EditArguments& arguments);

}  // namespace rankscope::edits
