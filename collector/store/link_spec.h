// SPDX-License-Identifier: Apache-2.0
// The peaks of links as a user writes them: "intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18". The one reader of
// `--links`, of RANKSCOPE_LINKS and of meta 'links'.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rankscope::store {

struct LinkSpecClass {
    double gbps = 0;                ///< 1e9 bytes/s, one direction, per rank; above 0
    std::optional<double> alphaUs;  ///< start-up per hop; none: not told
};

struct LinkSpec {
    std::optional<LinkSpecClass> intra;  ///< a rank's port inside its node
    std::optional<LinkSpecClass> inter;  ///< a rank's own share of its node's network cards
    std::string complaint;               ///< what is wrong with the text, for a person; the classes are empty then

    /// No rank of any machine sends 10 TB/s (GB300: 0.9 TB/s): such a number is in another unit.
    static constexpr double kMostGbps = 10'000;
    /// A second per hop is no start-up of a link either.
    static constexpr double kMostAlphaUs = 1e6;
};

/// An empty text is an empty specification without a complaint.
LinkSpec parseLinkSpec(std::string_view text);

}  // namespace rankscope::store
