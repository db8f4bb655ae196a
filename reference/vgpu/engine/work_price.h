// SPDX-License-Identifier: Apache-2.0
// What work takes on a healthy device: by formula, or by a table that somebody measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/vgpu/engine/cluster.h"
#include "reference/vgpu/engine/operator_api.h"

namespace rankscope::vgpu {

/// Nothing that is launched is shorter: an empty kernel keeps a device busy for about that long.
inline constexpr double kShortestKernelNs = 2000;

/// Share of `cluster.tflops` that arithmetic in these elements reaches.
double rateOf(RankscopeElement element);

/// max(flop / peak, bytes / bandwidth), in ns.
double workNs(const Cluster& cluster, const RankscopeWork& work);
/// A kernel of which only name and grid are known.
double unknownKernelNs(double blocks);

/// Times measured on a real device. A price is the time of the nearest point of the same name and element, scaled by
/// what the formula says of the difference. Format in reference/vgpu/README.md.
class PriceTable {
  public:
    PriceTable() = default;
    /// Throws std::runtime_error that names the line and the cause.
    static PriceTable parse(std::string_view text);
    /// Reads a file; throws the same with the file's name.
    static PriceTable read(const std::string& path);

    bool empty() const { return m_points.empty(); }
    /// Negative where the table has no such name.
    double operatorNs(const Cluster& cluster, std::string_view name, const RankscopeWork& work) const;
    double kernelNs(std::string_view mangledName, double blocks) const;

  private:
    struct Point {
        bool isKernel;
        std::string name;  ///< of a kernel: a part of its mangled name
        RankscopeWork work;
        double blocks, us;
    };
    std::vector<Point> m_points;
};

}  // namespace rankscope::vgpu
