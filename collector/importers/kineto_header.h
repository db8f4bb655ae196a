// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collector {

/// A process group as distributedInfo lists it.
struct KinetoProcessGroup {
    std::string name;
    std::vector<int64_t> ranks;  ///< global ranks; empty when not told
};

struct KinetoDevice {
    int64_t ordinal = 0;
    std::string name;
    std::optional<int64_t> memoryBytes;
    std::optional<int64_t> multiprocessors;
    std::optional<int64_t> computeCapability;  ///< major * 10 + minor
};

/// What a Kineto document says beside its events.
struct KinetoHeader {
    std::optional<int64_t> rank;
    std::optional<int64_t> worldSize;
    std::string ncclVersion;
    std::string hostName;
    std::optional<int64_t> baseTimeNs;  ///< added to every time; absent: times are Unix times
    std::vector<KinetoProcessGroup> groups;
    std::vector<KinetoDevice> devices;
};

/// True for the members of a document that readKinetoHeaderMember understands; all others need not be kept.
bool isKinetoHeaderMember(std::string_view key);
/// Reads one member (`json` is its whole value) into the header; false when it is damaged.
bool readKinetoHeaderMember(std::string_view key, std::string_view json, KinetoHeader& header);

}  // namespace rankscope::collector
