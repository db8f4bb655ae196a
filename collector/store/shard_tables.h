// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/shards.h"
#include "collector/store/sqlite.h"

namespace rankscope::store {

/// Makes SQL on `trace` see the events of all shards: of each event table a virtual one of the same name and columns
/// hides the empty one of the file (schema temp, which SQLite looks into first). Rows come in the order of ids;
/// conditions on `id` and `rank` are met without reading the rest. A shard that cannot be read ends the statement with
/// its error. Both must outlive the statements, `shards` also the connection.
void attachShardTables(Database& trace, Shards& shards);

}  // namespace rankscope::store
