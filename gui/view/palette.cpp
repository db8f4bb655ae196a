// SPDX-License-Identifier: Apache-2.0
#include "gui/view/palette.h"

#include "analyzer/text/activity_colours.h"

namespace rankscope::gui {
namespace {

constexpr Rgb kSky = 0xff56b4e9, kYellow = 0xfff0e442, kGrey = 0xff999999, kSlate = 0xff8fa3b8;

constexpr Rgb opaque(uint32_t rgb) {
    return 0xff000000 | rgb;
}

// In the order of EventKind: compute, communication, copy, set, nvtx, api, blockingCall, allocation, step, other,
// waiting, idle. What is not hidden of communication is a rank line's business: a kernel is in the colour of transfer.
constexpr std::array<Rgb, kEventKinds> kindsOf(const text::ActivityColours& of) {
    const Rgb memory = opaque(of.memory);
    return {opaque(of.compute),
            opaque(of.transfer),
            memory,
            memory,
            kSky,
            kGrey,
            kYellow,
            memory,
            kSlate,
            kGrey,
            opaque(of.waiting),
            kGrey};
}

// In the order of facts::IdleCause: of unknown cause, blocking call, late launch, allocator, input, other work. Where
// the host is in a call they have its colour.
constexpr std::array<Rgb, EventColours::kShades> idleOf(const text::ActivityColours& of) {
    return {kSlate, kYellow, kGrey, opaque(of.memory), kSky, opaque(of.waiting)};
}

// In the order of Activity.
constexpr std::array<Rgb, kActivities> activitiesOf(const text::ActivityColours& of) {
    return {opaque(of.compute), opaque(of.overlapped), opaque(of.waiting), opaque(of.transfer), opaque(of.memory)};
}

EventColours shadesOf(const text::ActivityColours& activities) {
    constexpr std::array<float, EventColours::kShades> kShades{0.0f, 0.16f, 0.32f, -0.14f, -0.26f, 0.08f};
    const std::array<Rgb, kEventKinds> kinds = kindsOf(activities);
    EventColours colours;
    for (size_t kind = 0; kind < kEventKinds; ++kind)
        for (size_t i = 0; i < kShades.size(); ++i)
            colours.table[kind][i] = kShades[i] >= 0 ? blend(kinds[kind], 0xffffffff, kShades[i])
                                                     : blend(kinds[kind], 0xff000000, -kShades[i]);
    colours.table[static_cast<size_t>(EventKind::idle)] = idleOf(activities);
    return colours;
}

}  // namespace

const Palette& Palette::light() {
    static const Palette palette{0xffffffff,
                                 0xfff6f7f9,
                                 0xffdfe3e8,
                                 0xff1c1f24,
                                 0xff6a7280,
                                 0xffe8ebf0,
                                 0xff111111,
                                 0xffc2185b,
                                 0xffffffff,
                                 shadesOf(text::kActivitiesOnLight),
                                 activitiesOf(text::kActivitiesOnLight)};
    return palette;
}

const Palette& Palette::dark() {
    static const Palette palette{0xff1b1e23,
                                 0xff20242a,
                                 0xff343a43,
                                 0xffe6e8eb,
                                 0xff98a1ae,
                                 0xff2a2f37,
                                 0xffffffff,
                                 0xffff80ab,
                                 0xff16181c,
                                 shadesOf(text::kActivitiesOnDark),
                                 activitiesOf(text::kActivitiesOnDark)};
    return palette;
}

QColor Palette::ink(Rgb back) noexcept {
    return QColor::fromRgb(inkOn(back));
}

}  // namespace rankscope::gui
