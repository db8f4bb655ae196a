// SPDX-License-Identifier: Apache-2.0
#include "gui/session/reading_hint.h"

#include <array>

namespace rankscope::gui {
namespace {

struct Hint {
    std::string_view diagnosis, text;
};

constexpr std::array kHints{
    Hint{"RS101",
         "Orange and blank on the ranks' lines is the bubble: a stage with nothing to do until its neighbour sends. "
         "Framed are the longest waits."},
    Hint{
        "RS102",
        "The line that stays blue longest is the stage that sets the pace; orange on the others is their wait for it."},
    Hint{"RS103",
         "Framed are messages between stages that take long themselves: orange with no blue beside it, while both ends "
         "are there."},
    Hint{"RS201",
         "Orange is communication with no compute beside it: the GPU could have computed meanwhile. Hidden "
         "communication would be green."},
    Hint{"RS202",
         "The communication lane is cut into many short messages; each pays the same start-up, whatever its size. "
         "Framed are some of them."},
    Hint{"RS203",
         "Framed are large messages that already run as fast as the link can: orange shrinks only when fewer bytes are "
         "sent."},
    Hint{"RS204",
         "Framed are large messages that run far slower than their link can: orange is longer than it had to be."},
    Hint{"RS205",
         "Framed are collectives for which NCCL took a slower algorithm or protocol than there is: orange is longer "
         "than it had to be."},
    Hint{
        "RS206",
        "Framed is communication that could be left out: the same data goes over the network more often than it must."},
    Hint{"RS207",
         "Framed are the many collectives of layers that wait for the network between hosts: the blue of each layer is "
         "cut apart by orange."},
    Hint{"RS208",
         "Framed are messages over the slow link: the same size takes less elsewhere. Orange is what the ranks behind "
         "it lose."},
    Hint{"RS209",
         "Framed are kernels that take longer while communication runs beside them (green) than alone (blue)."},
    Hint{"RS210",
         "Framed are gradient sums in full precision: half the bytes would carry them, and orange would shrink "
         "accordingly."},
    Hint{"RS301",
         "The rank to fix stays blue (it still computes) where the others are orange: they have done the same work and "
         "wait for it. Framed are such waits."},
    Hint{"RS302",
         "The ranks of the host to fix stay blue where those of the others are orange: they have done the same work "
         "and wait. Framed are such waits."},
    Hint{"RS303",
         "Framed is the stall: one rank stands still for once (blank, or a long call on its host lanes) and the others "
         "wait for it (orange)."},
    Hint{"RS304",
         "Blue is of different length from rank to rank and step to step: they are given different amounts of work, "
         "and orange is the wait for the largest."},
    Hint{"RS401",
         "Blank gaps between short kernels: the GPU waits for the host to launch the next one. Framed are such gaps."},
    Hint{"RS402",
         "Blank behind a framed call: the host waits for the GPU, and then the GPU for the host's next launch."},
    Hint{"RS403",
         "Blank at the start of the step, with no CUDA call on the host lanes: the next batch is not there yet. Framed "
         "are such gaps."},
    Hint{"RS404",
         "Framed are allocations and frees inside the step: each makes the GPU run dry (blank) until it is done."},
    Hint{"RS405", "Framed are copies from pageable memory: slow, and the host stands still meanwhile."},
    Hint{"RS406",
         "Blank on one rank while a call that takes microseconds goes on and on: its host has no core to run on. "
         "Framed are such pauses."},
    Hint{"RS501", "One rank's line ends or never enters where all others wait in the framed collective."},
    Hint{"RS502", "The framed calls should be the same one: two ranks disagree on what to communicate."},
    Hint{"RS503", "The rank to fix ends first; the others wait in the framed calls until they time out."},
};

}  // namespace

std::string readingHint(std::string_view diagnosis) {
    for (const Hint& hint : kHints)
        if (hint.diagnosis == diagnosis) return std::string(hint.text);
    return {};
}

}  // namespace rankscope::gui
