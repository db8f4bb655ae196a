// SPDX-License-Identifier: Apache-2.0
// Values as bytes for another process of the same team: the same version of the program on the same kind of machine.
//
// What is trivially copyable goes as it lies in memory, a text or list as its count (8 bytes) and its elements, an
// optional as a byte and its value. Lists of trivially copyable elements carry the size of one (4 bytes), so that two
// builds that differ are told and not believed. Of any other struct its namespace has `forEachField(value, visit)`,
// which calls visit(field) for each, in the order of the declaration.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/store/error.h"

namespace rankscope::team {

[[noreturn]] inline void refuseMessage(const std::string& sender) {
    throw store::Error(sender, "sent a message that this build of rankscope does not understand",
                       "start the same installation of rankscope on all nodes");
}

/// Makes a message.
class Packer {
  public:
    template <typename Value>
    Packer& operator()(const Value& value) {
        if constexpr (std::is_trivially_copyable_v<Value>)
            raw(&value, sizeof value);
        else
            forEachField(const_cast<Value&>(value), [this](auto&... fields) { ((*this)(fields), ...); });
        return *this;
    }
    Packer& operator()(const std::string& text) {
        (*this)(uint64_t{text.size()});
        raw(text.data(), text.size());
        return *this;
    }
    template <typename Value>
    Packer& operator()(const std::vector<Value>& list) {
        (*this)(uint64_t{list.size()});
        if constexpr (std::is_trivially_copyable_v<Value>) {
            (*this)(static_cast<uint32_t>(sizeof(Value)));
            raw(list.data(), list.size() * sizeof(Value));
        } else {
            for (const Value& value : list) (*this)(value);
        }
        return *this;
    }
    template <typename Value>
    requires(!std::is_trivially_copyable_v<std::optional<Value>>) Packer& operator()(
        const std::optional<Value>& value) {
        (*this)(value.has_value());
        if (value) (*this)(*value);
        return *this;
    }
    template <typename First, typename Second>
    Packer& operator()(const std::pair<First, Second>& pair) {
        return (*this)(pair.first)(pair.second);
    }
    template <typename Key, typename Value>
    Packer& operator()(const std::map<Key, Value>& map) {
        (*this)(uint64_t{map.size()});
        for (const auto& [key, value] : map) (*this)(key)(value);
        return *this;
    }

    std::string take() { return std::move(m_bytes); }

  private:
    void raw(const void* from, size_t bytes) { m_bytes.append(static_cast<const char*>(from), bytes); }

    std::string m_bytes;
};

/// Reads a message in the order in which it was made. Throws store::Error where it ends too early or is of another
/// build.
class Unpacker {
  public:
    /// `sender` names the process in errors. `bytes` must outlive this.
    Unpacker(std::string_view bytes, std::string sender) : m_left(bytes), m_sender(std::move(sender)) {}

    template <typename Value>
    Unpacker& operator()(Value& value) {
        if constexpr (std::is_trivially_copyable_v<Value>)
            raw(&value, sizeof value);
        else
            forEachField(value, [this](auto&... fields) { ((*this)(fields), ...); });
        return *this;
    }
    Unpacker& operator()(std::string& text) {
        text.resize(count(1));
        raw(text.data(), text.size());
        return *this;
    }
    template <typename Value>
    Unpacker& operator()(std::vector<Value>& list) {
        list.clear();
        if constexpr (std::is_trivially_copyable_v<Value>) {
            const uint64_t size = get<uint64_t>();
            if (get<uint32_t>() != sizeof(Value)) refuse();
            if (size > m_left.size() / sizeof(Value)) refuse();
            list.resize(size);
            raw(list.data(), size * sizeof(Value));
        } else {
            list.resize(count(1));
            for (Value& value : list) (*this)(value);
        }
        return *this;
    }
    template <typename Value>
    requires(!std::is_trivially_copyable_v<std::optional<Value>>) Unpacker& operator()(std::optional<Value>& value) {
        value.reset();
        if (get<bool>()) (*this)(value.emplace());
        return *this;
    }
    template <typename First, typename Second>
    Unpacker& operator()(std::pair<First, Second>& pair) {
        return (*this)(pair.first)(pair.second);
    }
    template <typename Key, typename Value>
    Unpacker& operator()(std::map<Key, Value>& map) {
        map.clear();
        for (uint64_t left = count(1); left > 0; --left) {
            const Key key = get<Key>();
            (*this)(map[key]);
        }
        return *this;
    }
    template <typename Value>
    Value get() {
        Value value{};
        (*this)(value);
        return value;
    }

  private:
    /// Of elements that take so many bytes at least.
    uint64_t count(size_t leastBytes) {
        const auto size = get<uint64_t>();
        if (size > m_left.size() / leastBytes) refuse();
        return size;
    }
    void raw(void* to, size_t bytes) {
        if (bytes > m_left.size()) refuse();
        if (bytes != 0) std::memcpy(to, m_left.data(), bytes);
        m_left.remove_prefix(bytes);
    }
    [[noreturn]] void refuse() const { refuseMessage(m_sender); }

    std::string_view m_left;
    std::string m_sender;
};

}  // namespace rankscope::team
