// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

int32_t LocalStrings::intern(std::string_view text) {
    const auto [place, isNew] = m_ids.try_emplace(std::string(text), static_cast<int32_t>(m_texts.size()));
    if (isNew) m_texts.push_back(&place->first);
    return place->second;
}

}  // namespace rankscope::collector
