// SPDX-License-Identifier: Apache-2.0
// How link peaks are written, and what is refused.
#include "collector/store/link_spec.h"

#include <gtest/gtest.h>

namespace rankscope::store {
namespace {

TEST(LinkSpec, EachClassHasASpeedAndPerhapsAStartup) {
    const LinkSpec both = parseLinkSpec(" intra:gbps=200,alpha_us=6 ; inter: alpha_us=18, gbps=12.5");
    EXPECT_EQ(both.complaint, "");
    EXPECT_EQ(both.intra->gbps, 200);
    EXPECT_EQ(both.intra->alphaUs, 6);
    EXPECT_EQ(both.inter->gbps, 12.5);
    EXPECT_EQ(both.inter->alphaUs, 18);
    const LinkSpec one = parseLinkSpec("inter:gbps=25");
    EXPECT_FALSE(one.intra);
    EXPECT_FALSE(one.inter->alphaUs);
    EXPECT_EQ(parseLinkSpec("").complaint, "");
    EXPECT_FALSE(parseLinkSpec("").intra);
}

TEST(LinkSpec, WhatCannotBeASpeedIsNamedAndNothingIsTaken) {
    const std::pair<const char*, const char*> wrong[] = {{"intra:gbps=0", "above 0"},
                                                         {"intra:gbps=-5", "above 0"},
                                                         {"intra:gbps=nan", "no number"},
                                                         {"intra:gbps=inf", "no number"},
                                                         {"intra:gbps=200GB/s", "no number"},
                                                         {"intra:gbps=10001", "10 TB/s"},
                                                         {"intra:gbps=2e11", "10 TB/s"},
                                                         {"intra:gbps=5,alpha_us=-1", "below 0"},
                                                         {"intra:gbps=5,alpha_us=2e6", "second"},
                                                         {"middle:gbps=5", "no class"},
                                                         {"intra:alpha_us=2", "lacks gbps"},
                                                         {"intra:gbps=5;intra:gbps=6", "twice"},
                                                         {"intra:gbps=5,gbps=6", "twice"},
                                                         {"garbage", "no class"},
                                                         {"intra:gbps=5;", "no class"},
                                                         {"intra:speed=5", "neither"}};
    for (const auto& [text, why] : wrong) {
        const LinkSpec spec = parseLinkSpec(std::string("inter:gbps=40;") + text);
        EXPECT_NE(spec.complaint.find(why), std::string::npos) << text << ": " << spec.complaint;
        EXPECT_FALSE(spec.intra) << text;
        EXPECT_FALSE(spec.inter) << text;
    }
}

}  // namespace
}  // namespace rankscope::store
