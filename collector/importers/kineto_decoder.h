// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include "collector/importers/kineto_event.h"

namespace rankscope::collector {

enum class DecodeResult : uint8_t {
    event,    ///< `event` is complete and wanted
    skipped,  ///< not needed; its end may not have been looked at
    broken,   ///< the JSON is damaged inside this event: the parser must not go on behind it
};

/// Reads one event out of a simdjson on-demand object, going over its fields once.
DecodeResult decodeKinetoEvent(simdjson::ondemand::object object, KinetoEvent& event);

}  // namespace rankscope::collector
