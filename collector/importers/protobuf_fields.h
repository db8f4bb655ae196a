// SPDX-License-Identifier: Apache-2.0
// Fields of protobuf messages by number and wire type. protozero reads a field as whatever it is asked for, and checks
// by an assertion at most that it is that: in a damaged file it may be another.
#pragma once

#include <protozero/pbf_message.hpp>
#include <string_view>

namespace rankscope::collector {

template <typename Tag>
using PbMessage = protozero::pbf_message<Tag>;

/// For `switch (message.tag_and_type())`: a number of variable length.
template <typename Tag>
constexpr uint32_t pbNumberField(Tag tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}

/// The same for a text, bytes or a message.
template <typename Tag>
constexpr uint32_t pbTextField(Tag tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

/// Moves to the next field that is a text, bytes or a message with this number.
template <typename Tag>
bool nextTextField(PbMessage<Tag>& message, Tag tag) {
    return message.next(tag, protozero::pbf_wire_type::length_delimited);
}

inline std::string_view pbView(const protozero::data_view& data) {
    return {data.data(), data.size()};
}

}  // namespace rankscope::collector
