// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::diagnose {

/// A diagnosis whose input the recording lacks.
struct NotJudged {
    std::string id;
    std::string needs;  // in a few words: "no link peak"
};

}  // namespace rankscope::diagnose
