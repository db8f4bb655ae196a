// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>

namespace rankscope::store {

/// A number or none, in the room of the number: the rows that a job is held by have up to ten such columns, there are
/// millions of them, and std::optional takes twice the room. The lowest number of a signed type, and the highest of an
/// unsigned one, stand for none; no time, size or row id is either. It is used as
/// a std::optional is.
template <std::integral T>
class MaybeNumber {
  public:
    using value_type = T;

    constexpr MaybeNumber() noexcept = default;
    constexpr MaybeNumber(std::nullopt_t) noexcept {}
    template <typename Number>
    requires std::is_arithmetic_v<Number>
    constexpr MaybeNumber(Number value) noexcept : m_value(static_cast<T>(value)) {}
    template <std::convertible_to<T> Number>
    constexpr MaybeNumber(const std::optional<Number>& value) noexcept
        : m_value(value ? static_cast<T>(*value) : kNone) {}
    template <std::integral Number>
    constexpr MaybeNumber(const MaybeNumber<Number>& value) noexcept
        : m_value(value ? static_cast<T>(*value) : kNone) {}

    constexpr operator std::optional<T>() const noexcept {
        return has_value() ? std::optional<T>(m_value) : std::nullopt;
    }

    constexpr bool has_value() const noexcept { return m_value != kNone; }
    constexpr explicit operator bool() const noexcept { return has_value(); }
    constexpr T& operator*() noexcept { return m_value; }
    constexpr const T& operator*() const noexcept { return m_value; }
    /// std::bad_optional_access where there is none.
    constexpr T value() const { return std::optional<T>(*this).value(); }
    template <typename Other>
    constexpr T value_or(Other other) const noexcept {
        return has_value() ? m_value : static_cast<T>(other);
    }
    constexpr void reset() noexcept { m_value = kNone; }
    constexpr T& emplace(T value = T{}) noexcept { return m_value = value; }

    /// None comes before every number, as of std::optional.
    friend constexpr bool operator==(const MaybeNumber&, const MaybeNumber&) noexcept = default;
    friend constexpr std::strong_ordering operator<=>(const MaybeNumber& a, const MaybeNumber& b) noexcept {
        if (a.has_value() != b.has_value()) return a.has_value() <=> b.has_value();
        return a.m_value <=> b.m_value;
    }
    template <typename Number>
    requires std::is_arithmetic_v<Number>
    friend constexpr bool operator==(const MaybeNumber& a, Number b) noexcept {
        return a.has_value() && std::optional<T>(a) == b;
    }
    friend constexpr bool operator==(const MaybeNumber& a, std::nullopt_t) noexcept { return !a.has_value(); }
    friend constexpr bool operator==(const MaybeNumber& a, const std::optional<T>& b) noexcept {
        return std::optional<T>(a) == b;
    }

  private:
    static constexpr T kNone = std::is_signed_v<T> ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();

    T m_value = kNone;
};

}  // namespace rankscope::store
