// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/idle_words.h"

namespace rankscope::facts {

std::string_view inWords(std::string_view idleCause) {
    if (idleCause == "blocking_call") return "the host blocks in a call";
    if (idleCause == "late_launch") return "the host launches late";
    if (idleCause == "allocator") return "the host is in the allocator";
    if (idleCause == "input") return "the host waits for input";
    if (idleCause == "dependency") return "launched work waits for other work";
    return "of unknown cause";
}

}  // namespace rankscope::facts
