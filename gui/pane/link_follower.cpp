// SPDX-License-Identifier: Apache-2.0
#include "gui/pane/link_follower.h"

#include <algorithm>

namespace rankscope::gui {

LinkFollower::LinkFollower(TimelineModel& model, RunSession& session, QObject* parent)
    : QObject(parent), m_model(model), m_session(session) {
    connect(&m_model, &TimelineModel::selectionChanged, this, &LinkFollower::ask);
    connect(&m_model, &TimelineModel::lanesChanged, this, &LinkFollower::showArrived);
}

void LinkFollower::ask() {
    const EventRef selected = m_model.selection();
    m_links = {};
    m_awaited.clear();
    m_asked =
        selected.valid() ? EventLink{m_model.table(selected), m_model.rowId(selected), selected.rank} : EventLink{};
    if (!selected.valid()) return;
    m_session.queries().ask(
        this, [row = m_asked](store::TraceReader& reader) { return std::make_pair(row, findEventLinks(reader, row)); },
        [this](const std::pair<EventLink, EventLinks>& answer) {
            if (!(answer.first == m_asked)) return;
            m_links = answer.second;
            show();
            if (!m_links.sentence.empty()) emit described(QString::fromStdString(m_links.sentence));
        });
}

void LinkFollower::showArrived() {
    if (std::ranges::any_of(m_awaited, [&](int32_t rank) { return m_model.lanes().tracks(rank) != nullptr; })) show();
}

void LinkFollower::show() {
    const EventLinks& links = m_links;
    const EventRef selected = m_model.selection();
    m_awaited.clear();
    const auto found = [&](const EventLink& row) {
        if (!m_model.lanes().tracks(row.rank)) m_awaited.insert(row.rank);
        return m_model.find(row.table, row.rowId, row.rank);
    };
    std::vector<EventRef> related;
    std::vector<FlowLine> flows;
    for (const EventLink& cause : links.causes)
        if (const EventRef event = found(cause); event.valid()) flows.push_back({event, selected});
    for (const EventLink& effect : links.effects)
        if (const EventRef event = found(effect); event.valid()) flows.push_back({selected, event});
    // The others waited for the member that came last, so the lines begin there.
    const EventRef last = links.lastMember ? found(*links.lastMember) : selected;
    for (const EventLink& member : links.members) {
        const EventRef event = found(member);
        if (!event.valid()) continue;
        related.push_back(event);
        if (last.valid() && !(event == last)) flows.push_back({last, event});
    }
    if (last.valid() && !(last == selected) && !links.members.empty()) flows.push_back({last, selected});
    m_model.setRelated(std::move(related), std::move(flows));
}

void LinkFollower::follow(int direction) {
    const std::vector<EventLink>& first = direction < 0 ? m_links.causes : m_links.effects;
    for (const auto* rows : std::initializer_list<const std::vector<EventLink>*>{&first, &m_links.members})
        for (const EventLink& row : *rows)
            if (m_model.goToRow(row.table, row.rowId, row.rank)) return;
}

}  // namespace rankscope::gui
