// SPDX-License-Identifier: Apache-2.0
// Lists that are too long for one message (packing.h): first how long each is, then their elements as they lie in
// memory, in parts. A part is small enough that it is still in the processor's cache when it is copied to its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/team/packing.h"

namespace rankscope::team {

inline constexpr size_t kPartBytes = size_t{1} << 20;

/// How long each list is, and how large an element: two builds that differ are told.
using ListLengths = std::vector<std::pair<uint64_t, uint64_t>>;

/// Calls function(first, count) for each part of a list, in order.
template <typename Value, typename Function>
void forEachPart(size_t count, const Function& function) {
    static_assert(std::is_trivially_copyable_v<Value>);
    constexpr size_t kMost = kPartBytes / sizeof(Value);
    for (size_t at = 0; at < count; at += kMost) function(at, std::min(kMost, count - at));
}

template <typename... Values>
void sendLists(const std::function<void(std::string_view)>& send, const std::vector<Values>&... lists) {
    send(Packer()(ListLengths{{lists.size(), sizeof(Values)}...}).take());
    const auto sendParts = [&send]<typename Value>(const std::vector<Value>& list) {
        const auto* const data = reinterpret_cast<const char*>(list.data());
        forEachPart<Value>(list.size(), [&](size_t first, size_t count) {
            send({data + first * sizeof(Value), count * sizeof(Value)});
        });
    };
    (sendParts(lists), ...);
}

/// Replaces what is in the lists. `receive` gives the messages of `sender`, each until the next. Throws store::Error
/// where they are of another build.
template <typename... Values>
void receiveLists(const std::function<std::string_view()>& receive, const std::string& sender,
                  std::vector<Values>&... lists) {
    const auto lengths = Unpacker(receive(), sender).template get<ListLengths>();
    const ListLengths sizes{{0, sizeof(Values)}...};
    if (!std::ranges::equal(lengths, sizes, {}, &ListLengths::value_type::second, &ListLengths::value_type::second))
        refuseMessage(sender);
    size_t number = 0;
    const auto take = [&]<typename Value>(std::vector<Value>& values) {
        const size_t count = lengths[number++].first;
        values.clear();
        values.reserve(count);  // and not resized: to fill the elements first costs as much as to receive them
        forEachPart<Value>(count, [&](size_t, size_t elements) {
            const std::string_view part = receive();
            if (part.size() != elements * sizeof(Value)) refuseMessage(sender);
            const auto* from = reinterpret_cast<const Value*>(part.data());
            values.insert(values.end(), from, from + elements);
        });
    };
    (take(lists), ...);
}

}  // namespace rankscope::team
