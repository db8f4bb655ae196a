// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/xspace.h"

#include <algorithm>
#include <protozero/pbf_message.hpp>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"

namespace rankscope::collector {

namespace {

/// Recordings of minutes on eight devices have some hundred megabytes; while one is read it is held twice.
constexpr size_t kMostXSpaceBytes = size_t{1} << 30;
/// 73 years, so that sums of a few such times do not overflow.
constexpr int64_t kMostXSpaceNs = int64_t{1} << 61;

enum class Space : protozero::pbf_tag_type { planes = 1, hostnames = 4 };
enum class Plane : protozero::pbf_tag_type { name = 2, lines = 3, eventMetadata = 4, statMetadata = 5, stats = 6 };
enum class Line : protozero::pbf_tag_type { id = 1, name = 2, timestampNs = 3, events = 4, displayName = 11 };
enum class Event : protozero::pbf_tag_type { metadataId = 1, offsetPs = 2, durationPs = 3, stats = 4 };
enum class Stat : protozero::pbf_tag_type {
    metadataId = 1,
    real = 2,
    unsignedNumber = 3,
    number = 4,
    text = 5,
    bytes = 6,
    reference = 7
};
enum class MapEntry : protozero::pbf_tag_type { key = 1, value = 2 };
enum class Named : protozero::pbf_tag_type { id = 1, name = 2, displayName = 4, stats = 5 };

template <typename Tag>
using PlainMessage = protozero::pbf_message<Tag>;

std::string_view plainView(const protozero::data_view& data) {
    return {data.data(), data.size()};
}

struct EventName {
    std::string_view name, displayName;
    std::vector<std::string_view> stats;  // messages
};

}  // namespace

/// What lines, events and stats of a plane name by number; it stands behind them.
struct XSpace::Metadata {
    std::unordered_map<int64_t, EventName> events;
    std::unordered_map<int64_t, std::string_view> stats;

    std::string_view statName(int64_t id) const {
        const auto found = stats.find(id);
        return found == stats.end() ? std::string_view() : found->second;
    }

    XStat stat(std::string_view message) const {
        XStat result;
        PlainMessage<Stat> stat(message.data(), message.size());
        while (stat.next()) switch (stat.tag()) {
                case Stat::metadataId:
                    result.name = statName(stat.get_int64());
                    break;
                case Stat::unsignedNumber:
                    result.number = static_cast<int64_t>(stat.get_uint64());
                    break;
                case Stat::number:
                    result.number = stat.get_int64();
                    break;
                case Stat::text:
                case Stat::bytes:
                    result.text = plainView(stat.get_view());
                    break;
                case Stat::reference:
                    result.text = statName(static_cast<int64_t>(stat.get_uint64()));
                    break;
                default:
                    stat.skip();
            }
        return result;
    }
};

std::optional<int64_t> XEvent::number(std::string_view stat) const {
    const auto found = std::ranges::find(stats, stat, &XStat::name);
    return found == stats.end() ? std::nullopt : found->number;
}

std::string_view XEvent::text(std::string_view stat) const {
    const auto found = std::ranges::find(stats, stat, &XStat::name);
    return found == stats.end() ? std::string_view() : found->text;
}

XSpace::XSpace(const std::filesystem::path& file) : m_file(file) {
    InputFile input(file);
    m_text = wholeText(input, kMostXSpaceBytes, "a recording of XLA's profiler");
    PlainMessage<Space> space(m_text.data(), m_text.size());
    try {
        while (space.next()) switch (space.tag()) {
                case Space::planes:
                    m_planes.push_back(plainView(space.get_view()));
                    break;
                case Space::hostnames:
                    m_hosts.push_back(space.get_string());
                    break;
                default:
                    space.skip();
            }
    } catch (const protozero::exception&) {
        m_losses.add(
            "torn_tail", "error", m_text.size() - space.length(),
            "the file is cut off or damaged; the planes in front of that are imported, and one in whose middle "
            "it is, is not");
    }
    if (!input.damage().empty()) m_losses.add("torn_tail", "error", m_text.size(), input.damage());
    if (m_planes.empty())
        throw ImportError(file, 0,
                          "no plane of it can be read: it is cut off, damaged, or no recording of XLA's profiler",
                          "record again with jax.profiler.trace");
}

void XSpace::readPlane(std::string_view message, const Wanted& wanted, const Visit& visit, XPlane& plane) {
    Metadata metadata;
    std::vector<std::string_view> lines, stats;
    PlainMessage<Plane> fields(message.data(), message.size());
    while (fields.next()) switch (fields.tag()) {
            case Plane::name:
                plane.name = plainView(fields.get_view());
                break;
            case Plane::lines:
                lines.push_back(plainView(fields.get_view()));
                break;
            case Plane::stats:
                stats.push_back(plainView(fields.get_view()));
                break;
            case Plane::eventMetadata:
            case Plane::statMetadata: {
                const bool isEvent = fields.tag() == Plane::eventMetadata;
                PlainMessage<MapEntry> entry = fields.get_message();
                int64_t key = 0;
                EventName name;
                while (entry.next()) switch (entry.tag()) {
                        case MapEntry::key:
                            key = entry.get_int64();
                            break;
                        case MapEntry::value: {
                            PlainMessage<Named> named = entry.get_message();
                            while (named.next()) switch (named.tag()) {
                                    case Named::name:
                                        name.name = plainView(named.get_view());
                                        break;
                                    case Named::displayName:
                                        if (isEvent)
                                            name.displayName = plainView(named.get_view());
                                        else
                                            named.skip();
                                        break;
                                    case Named::stats:
                                        if (isEvent)
                                            name.stats.push_back(plainView(named.get_view()));
                                        else
                                            named.skip();
                                        break;
                                    default:
                                        named.skip();
                                }
                            break;
                        }
                        default:
                            entry.skip();
                    }
                if (isEvent)
                    metadata.events[key] = std::move(name);
                else
                    metadata.stats[key] = name.name;
                break;
            }
            default:
                fields.skip();
        }
    for (const std::string_view stat : stats) plane.stats.push_back(metadata.stat(stat));
    for (const std::string_view text : lines) {
        XLine line;
        int64_t startNs = 0;
        std::vector<std::string_view> events;
        PlainMessage<Line> told(text.data(), text.size());
        while (told.next()) switch (told.tag()) {
                case Line::id:
                    line.id = told.get_int64();
                    break;
                case Line::name:
                    line.name = plainView(told.get_view());
                    break;
                case Line::displayName:
                    if (line.name.empty())
                        line.name = plainView(told.get_view());
                    else
                        told.skip();
                    break;
                case Line::timestampNs:
                    startNs = told.get_int64();
                    break;
                case Line::events:
                    events.push_back(plainView(told.get_view()));
                    break;
                default:
                    told.skip();
            }
        plane.lines.push_back(line);
        if (!wanted || !wanted(plane, line)) continue;
        for (const std::string_view one : events) {
            XEvent event;
            int64_t offsetPs = 0, durationPs = 0, id = 0;
            std::vector<std::string_view> ownStats;
            PlainMessage<Event> parts(one.data(), one.size());
            while (parts.next()) switch (parts.tag()) {
                    case Event::metadataId:
                        id = parts.get_int64();
                        break;
                    case Event::offsetPs:
                        offsetPs = parts.get_int64();
                        break;
                    case Event::durationPs:
                        durationPs = parts.get_int64();
                        break;
                    case Event::stats:
                        ownStats.push_back(plainView(parts.get_view()));
                        break;
                    default:
                        parts.skip();
                }
            // Differences of times within the limit are in range; whole nanoseconds keep ends that meet together.
            const int64_t offsetNs = offsetPs / 1000,
                          endNs = offsetNs + (offsetPs % 1000 + durationPs % 1000) / 1000 + durationPs / 1000;
            if (durationPs < 0 || startNs < -kMostXSpaceNs || startNs > kMostXSpaceNs) {
                m_losses.add("bad_block", "warning", std::nullopt, "events with times that cannot be are left out");
                continue;
            }
            event.startNs = startNs + offsetNs;
            event.durNs = endNs - offsetNs;
            for (const std::string_view stat : ownStats) event.stats.push_back(metadata.stat(stat));
            const auto name = metadata.events.find(id);
            if (name != metadata.events.end()) {
                event.name = name->second.name;
                event.displayName = name->second.displayName;
                for (const std::string_view stat : name->second.stats) event.stats.push_back(metadata.stat(stat));
            }
            visit(plane, line, event);
        }
    }
}

void XSpace::forEachEvent(const Wanted& wanted, const Visit& visit) {
    for (const std::string_view message : m_planes) {
        XPlane plane;
        try {
            readPlane(message, wanted, visit, plane);
        } catch (const protozero::exception&) {
            m_losses.add("bad_block", "warning", static_cast<uint64_t>(message.data() - m_text.data()),
                         "a plane is damaged: what stands behind that is left out");
        }
    }
}

std::vector<XPlane> XSpace::planes() {
    std::vector<XPlane> result;
    for (const std::string_view message : m_planes) {
        XPlane plane;
        try {
            readPlane(message, nullptr, nullptr, plane);
        } catch (const protozero::exception&) {  // told when its events are read
        }
        result.push_back(std::move(plane));
    }
    return result;
}

}  // namespace rankscope::collector
