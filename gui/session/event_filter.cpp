// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_filter.h"

#include <charconv>
#include <cmath>

namespace rankscope::gui {
namespace {

void skipBlanks(std::string_view& text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

bool take(std::string_view& text, std::string_view word) {
    skipBlanks(text);
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

// Nanoseconds of a unit; 0 for none. Micro comes as u, as the Greek letter and as the sign.
double takeUnit(std::string_view& text) {
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"ns", 1}, {"us", 1e3}, {"\u00b5s", 1e3}, {"\u03bcs", 1e3}, {"ms", 1e6}, {"min", 6e10}, {"s", 1e9}};
    for (const auto& [name, ns] : kUnits)
        if (take(text, name)) return ns;
    return 0;
}

// A number with its unit at the front of `text`; without a unit in `unitNs` when that is not 0.
bool takeDuration(std::string_view& text, double& ns, std::string& error, double unitNs = 0) {
    skipBlanks(text);
    double number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || number < 0 || !std::isfinite(number)) {
        error = "a duration is expected, such as > 1 ms";
        return false;
    }
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    double unit = takeUnit(text);
    if (unit == 0) unit = number == 0 ? 1 : unitNs;
    if (unit == 0) {
        error = "the duration needs a unit: ns, us, ms, s or min";
        return false;
    }
    ns = number * unit;
    return true;
}

int64_t whole(double ns) {
    return ns >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(ns);
}

// "1 ms .. 2 ms" and "1 .. 2 ms", when `text` is that.
bool parseBetween(std::string_view text, DurationBounds& bounds) {
    size_t dots = text.find(".."), length = 2;
    if (dots == std::string_view::npos) dots = text.find('-'), length = 1;
    if (dots == std::string_view::npos) return false;
    std::string_view low = text.substr(0, dots), high = text.substr(dots + length);
    std::string error;
    double from = 0, to = 0;
    if (!takeDuration(high, to, error)) return false;
    std::string_view unitText = text.substr(dots + length);
    skipBlanks(unitText);
    double number = 0;
    std::from_chars(unitText.data(), unitText.data() + unitText.size(), number);
    if (!takeDuration(low, from, error, number > 0 ? to / number : 1)) return false;
    skipBlanks(low);
    skipBlanks(high);
    if (!low.empty() || !high.empty()) return false;
    bounds = {whole(std::ceil(from)), whole(to)};
    return true;
}

}  // namespace

bool belongs(EventClass wanted, EventTable table) noexcept {
    switch (wanted) {
        case EventClass::any:
            // A range on the device is one of the host seen elsewhere.
            return table != EventTable::none && table != EventTable::nvtxOnDevice;
        case EventClass::compute:
        case EventClass::communication:
            return table == EventTable::kernel;
        case EventClass::memory:
            return table == EventTable::memcpy || table == EventTable::memset;
        case EventClass::ncclCalls:
            return table == EventTable::ncclCall;
        case EventClass::cudaCalls:
            return table == EventTable::apiCall;
        case EventClass::nvtx:
            return table == EventTable::nvtx;
        case EventClass::steps:
            return table == EventTable::step;
    }
    return false;
}

bool belongs(EventClass wanted, EventTable table, EventKind kind) noexcept {
    if (wanted == EventClass::compute) return table == EventTable::kernel && kind != EventKind::communication;
    if (wanted == EventClass::communication) return table == EventTable::kernel && kind == EventKind::communication;
    return belongs(wanted, table);
}

Parsed<DurationBounds> parseDuration(std::string_view text) {
    Parsed<DurationBounds> parsed;
    skipBlanks(text);
    if (text.empty() || parseBetween(text, parsed.value)) return parsed;
    enum { atLeast, above, atMost, below } relation = atLeast;
    if (take(text, ">=") || take(text, "\u2265"))
        relation = atLeast;
    else if (take(text, "<=") || take(text, "\u2264"))
        relation = atMost;
    else if (take(text, ">"))
        relation = above;
    else if (take(text, "<"))
        relation = below;
    double ns = 0;
    if (!takeDuration(text, ns, parsed.error)) return parsed;
    skipBlanks(text);
    if (!text.empty()) {
        parsed.error = "a duration is expected, such as > 1 ms or 1 ms .. 2 ms";
        return parsed;
    }
    switch (relation) {
        case atLeast:
            parsed.value.atLeastNs = whole(std::ceil(ns));
            break;
        case above:
            parsed.value.atLeastNs = whole(std::floor(ns) + 1);
            break;
        case atMost:
            parsed.value.atMostNs = whole(ns);
            break;
        case below:
            parsed.value.atMostNs = whole(std::ceil(ns)) - 1;
            break;
    }
    return parsed;
}

Parsed<std::vector<RankInterval>> parseRanks(std::string_view text) {
    constexpr const char* kExpected = "ranks are expected, such as 3 or 0-7, 12";
    Parsed<std::vector<RankInterval>> parsed;
    const auto number = [&](int32_t& value) {
        skipBlanks(text);
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (code != std::errc() || value < 0) return false;
        text.remove_prefix(static_cast<size_t>(end - text.data()));
        return true;
    };
    skipBlanks(text);
    while (!text.empty()) {
        RankInterval interval;
        if (!number(interval.first)) break;
        interval.second = interval.first;
        const bool open = take(text, "..") || take(text, "-");
        if (open && !number(interval.second)) return {{}, kExpected};
        parsed.value.push_back(interval);
        take(text, ",");
        skipBlanks(text);
    }
    if (!text.empty()) return {{}, kExpected};
    return parsed;
}

}  // namespace rankscope::gui
