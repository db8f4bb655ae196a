// SPDX-License-Identifier: Apache-2.0
#include "gui/compare/run_pairing.h"

#include <utility>

namespace rankscope::gui {

RunPairing::RunPairing(TimelineModel& a, TimelineModel& b, QObject* parent) : QObject(parent), m_a(a), m_b(b) {
    for (const Side side : {Side::a, Side::b}) {
        connect(&model(side), &TimelineModel::runChanged, this, &RunPairing::pair);
        connect(&model(side), &TimelineModel::wholeChanged, this, &RunPairing::setRooms);
        connect(&model(side), &TimelineModel::viewChanged, this, [this, side] { follow(side); });
        connect(&model(side), &TimelineModel::timeSelectionChanged, this, [this, side] { followSelection(side); });
    }
}

void RunPairing::pair() {
    if (!m_a.run() || !m_b.run()) return;
    m_alignment.emplace(*m_a.run(), *m_b.run());
    setRooms();
    emit paired();
}

void RunPairing::setRooms() {
    if (!m_alignment) return;
    m_alignment->setWhole(Side::a, m_a.axis().whole());
    m_alignment->setWhole(Side::b, m_b.axis().whole());
    const bool following = std::exchange(m_following, true);
    for (const Side side : {Side::a, Side::b}) model(side).setRoom(m_alignment->room(side), m_alignment->fit(side));
    m_following = following;
    follow(Side::a);
}

void RunPairing::follow(Side leader) {
    if (!m_alignment || m_following) return;
    m_following = true;
    const TimeRange visible = model(leader).axis().visible();
    const StepAlignment::Anchor& anchor = m_alignment->anchorFor(leader, visible);
    model(other(leader)).place(m_alignment->across(leader, visible));
    for (const Side side : {Side::a, Side::b}) {
        const TimeAnchor shown{anchor.of(side),
                               anchor.step < 0 ? QString("start") : QString("step %1").arg(anchor.step)};
        if (model(side).anchor() != shown) model(side).setAnchor(shown);
    }
    m_following = false;
}

void RunPairing::followSelection(Side leader) {
    if (!m_alignment || m_following) return;
    m_following = true;
    const std::optional<TimeRange> selected = model(leader).timeSelection();
    model(other(leader)).selectTime(selected ? std::optional(m_alignment->matching(leader, *selected)) : std::nullopt);
    m_following = false;
}

}  // namespace rankscope::gui
