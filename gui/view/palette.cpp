// SPDX-License-Identifier: Apache-2.0
#include "gui/view/palette.h"

namespace rankscope::gui {
namespace {

constexpr Rgb kBlue = 0xff0072b2, kSky = 0xff56b4e9, kGreen = 0xff009e73, kYellow = 0xfff0e442, kOrange = 0xffe69f00,
              kVermilion = 0xffd55e00, kPurple = 0xffcc79a7, kGrey = 0xff999999;

// compute, communication, copy, set, nvtx, api, blockingCall, allocation, step, other
constexpr std::array<Rgb, kEventKinds> kKinds{kBlue, kOrange, kPurple,    kPurple, kSky,
                                              kGrey, kYellow, kVermilion, kGreen,  kGrey};
// compute, overlapped, exposed, memory
constexpr std::array<Rgb, kActivities> kActivityColours{kBlue, kGreen, kVermilion, kPurple};

EventColours shadesOf(const std::array<Rgb, kEventKinds>& kinds) {
    constexpr std::array<float, EventColours::kShades> kShades{0.0f, 0.16f, 0.32f, -0.14f, -0.26f};
    EventColours colours;
    for (size_t kind = 0; kind < kEventKinds; ++kind)
        for (size_t i = 0; i < kShades.size(); ++i)
            colours.table[kind][i] = kShades[i] >= 0 ? blend(kinds[kind], 0xffffffff, kShades[i])
                                                     : blend(kinds[kind], 0xff000000, -kShades[i]);
    return colours;
}

}  // namespace

const Palette& Palette::light() {
    static const Palette palette{0xffffffff, 0xfff6f7f9, 0xffdfe3e8, 0xff1c1f24,       0xff6a7280,      0xffe8ebf0,
                                 0xff111111, 0xffc2185b, 0xffffffff, shadesOf(kKinds), kActivityColours};
    return palette;
}

const Palette& Palette::dark() {
    static const Palette palette{0xff1b1e23, 0xff20242a, 0xff343a43, 0xffe6e8eb,       0xff98a1ae,      0xff2a2f37,
                                 0xffffffff, 0xffff80ab, 0xff16181c, shadesOf(kKinds), kActivityColours};
    return palette;
}

QColor Palette::ink(Rgb back) noexcept {
    return QColor::fromRgb(inkOn(back));
}

}  // namespace rankscope::gui
