// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::facts {

/// Throws store::Error when the small tables do not fit each other: communicators without members, or members,
/// collectives and messages of communicators and ranks that are not there. So whoever reads TraceFacts may follow these
/// references without looking. Only a damaged file has such rows.
void refuseBrokenReferences(const std::string& file, const TraceFacts& facts);

}  // namespace rankscope::facts
