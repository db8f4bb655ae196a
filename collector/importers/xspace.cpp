// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/xspace.h"

#include <algorithm>
#include <map>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/protobuf_fields.h"

namespace rankscope::collector {

namespace {

/// Recordings of minutes on eight devices have some hundred megabytes.
constexpr size_t kMostXSpaceBytes = size_t{1} << 30;
/// 73 years, so that sums of a few such times do not overflow.
constexpr int64_t kMostXSpaceNs = int64_t{1} << 61;
/// Names of events and of stats that one plane may have: programs have some 100,000 operations.
constexpr size_t kMostXNames = size_t{1} << 20;
/// An operation of a TPU is named by its whole text, which may list hundreds of operands.
constexpr size_t kMostXNameBytes = 4096;
/// Details of a kernel or a copy have 100 bytes.
constexpr size_t kMostXTextBytes = 1024;

enum class Space : protozero::pbf_tag_type { planes = 1, hostnames = 4 };
enum class Plane : protozero::pbf_tag_type { name = 2, lines = 3, eventMetadata = 4, statMetadata = 5, stats = 6 };
enum class Line : protozero::pbf_tag_type { id = 1, name = 2, timestampNs = 3, events = 4, displayName = 11 };
enum class Event : protozero::pbf_tag_type { metadataId = 1, offsetPs = 2, durationPs = 3, stats = 4 };
enum class Stat : protozero::pbf_tag_type {
    metadataId = 1,
    unsignedNumber = 3,
    number = 4,
    text = 5,
    bytes = 6,
    reference = 7
};
enum class MapEntry : protozero::pbf_tag_type { key = 1, value = 2 };
enum class Named : protozero::pbf_tag_type { name = 2, displayName = 4, stats = 5 };

template <typename Tag>
PbMessage<Tag> messageOf(std::string_view bytes) {
    return {bytes.data(), bytes.size()};
}

struct Entry {
    int64_t key = 0;
    std::string_view value;
};

Entry entryOf(std::string_view message) {
    Entry entry;
    auto fields = messageOf<MapEntry>(message);
    while (fields.next()) switch (fields.tag_and_type()) {
            case pbNumberField(MapEntry::key):
                entry.key = fields.get_int64();
                break;
            case pbTextField(MapEntry::value):
                entry.value = pbView(fields.get_view());
                break;
            default:
                fields.skip();
        }
    return entry;
}

/// Sets what is not set yet.
void complete(XStats& stats, const XStats& further) {
    for (size_t i = 0; i < stats.size() && i < further.size(); ++i)
        if (!stats[i]) stats[i] = further[i];
}

}  // namespace

/// What lines, events and stats of a plane name by number.
struct XSpace::Metadata {
    struct StatName {
        std::string_view name;
        size_t place = 0;  ///< among the names asked for; their number: none of them
    };
    struct EventName {
        uint64_t key = 0;
        std::string_view name, displayName;
        XStats stats;  ///< empty: none of those asked for
    };
    std::map<int64_t, StatName> stats;  // ordered: a file may choose keys that all hash alike
    std::map<int64_t, EventName> events;

    void addStatName(std::string_view message, const std::vector<std::string_view>& wanted) {
        const Entry entry = entryOf(message);
        StatName result;
        auto named = messageOf<Named>(entry.value);
        while (nextTextField(named, Named::name)) result.name = pbView(named.get_view());
        result.place = static_cast<size_t>(std::ranges::find(wanted, result.name) - wanted.begin());
        stats.insert_or_assign(entry.key, result);
    }

    /// True where the name is cut.
    bool addEventName(std::string_view message, uint64_t key, size_t wanted) {
        const Entry entry = entryOf(message);
        EventName result{key, {}, {}, {}};
        auto named = messageOf<Named>(entry.value);
        while (named.next()) switch (named.tag_and_type()) {
                case pbTextField(Named::name):
                    result.name = pbView(named.get_view());
                    break;
                case pbTextField(Named::displayName):
                    result.displayName = pbView(named.get_view());
                    break;
                case pbTextField(Named::stats):
                    addStat(pbView(named.get_view()), result.stats, wanted);
                    break;
                default:
                    named.skip();
            }
        const bool isCut = result.name.size() > kMostXNameBytes || result.displayName.size() > kMostXNameBytes;
        result.name = firstBytes(result.name, kMostXNameBytes);
        result.displayName = firstBytes(result.displayName, kMostXNameBytes);
        events.insert_or_assign(entry.key, std::move(result));
        return isCut;
    }

    /// Sets a stat of `into` if it is one of those asked for and the first of its name.
    void addStat(std::string_view message, XStats& into, size_t wanted) const {
        auto fields = messageOf<Stat>(message);
        XStat value;
        size_t place = wanted;
        while (fields.next()) switch (fields.tag_and_type()) {
                case pbNumberField(Stat::metadataId): {
                    const auto known = stats.find(fields.get_int64());
                    place = known == stats.end() ? wanted : known->second.place;
                    break;
                }
                case pbNumberField(Stat::unsignedNumber):
                    value.number = static_cast<int64_t>(fields.get_uint64());
                    break;
                case pbNumberField(Stat::number):
                    value.number = fields.get_int64();
                    break;
                case pbTextField(Stat::text):
                case pbTextField(Stat::bytes):
                    value.text = firstBytes(pbView(fields.get_view()), kMostXTextBytes);
                    break;
                case pbNumberField(Stat::reference): {
                    const auto known = stats.find(static_cast<int64_t>(fields.get_uint64()));
                    if (known != stats.end()) value.text = firstBytes(known->second.name, kMostXTextBytes);
                    break;
                }
                default:
                    fields.skip();
            }
        if (place >= wanted) return;
        if (into.empty()) into.resize(wanted);
        if (!into[place]) into[place] = value;
    }
};

std::optional<int64_t> XEvent::number(size_t stat) const {
    return stat < stats.size() && stats[stat] ? stats[stat]->number : std::nullopt;
}

std::string_view XEvent::text(size_t stat) const {
    return stat < stats.size() && stats[stat] ? stats[stat]->text : std::string_view();
}

XSpace::XSpace(const std::filesystem::path& file, std::vector<std::string_view> stats) : m_stats(std::move(stats)) {
    InputFile input(file);
    m_text = wholeText(input, kMostXSpaceBytes, "a recording of XLA's profiler");
    auto space = messageOf<Space>(m_text);
    bool hasPlane = false;
    size_t end = 0;  // of what is whole
    try {
        for (; space.next(); end = m_text.size() - space.length()) switch (space.tag_and_type()) {
                case pbTextField(Space::planes):
                    space.skip();
                    hasPlane = true;
                    break;
                case pbTextField(Space::hostnames): {
                    const std::string_view name = pbView(space.get_view());
                    if (m_host.empty()) m_host = firstBytes(name, kMostXTextBytes);
                    break;
                }
                default:
                    space.skip();
            }
    } catch (const protozero::exception&) {
        m_losses.add("torn_tail", "error", end,
                     "the file is cut off or damaged: planes in front of that are imported, what begins here is not");
        m_text.resize(end);
    }
    if (!input.damage().empty()) m_losses.add("torn_tail", "error", m_text.size(), input.damage());
    if (!hasPlane)
        throw ImportError(file, 0,
                          "no plane of it can be read: it is cut off, damaged, or no recording of XLA's profiler",
                          "record again with jax.profiler.trace");
}

void XSpace::visit(XSpaceVisitor& visitor, ImportLosses& losses) {
    auto space = messageOf<Space>(m_text);
    while (nextTextField(space, Space::planes)) {
        const std::string_view message = pbView(space.get_view());
        try {
            visitPlane(message, visitor, losses);
        } catch (const protozero::exception&) {
            losses.add("bad_block", "warning", offsetOf(message), "planes that are damaged are left out");
        }
    }
}

/// Lines stand in front of the names that their events have: a plane is gone over several times, and nothing is kept.
void XSpace::visitPlane(std::string_view message, XSpaceVisitor& visitor, ImportLosses& losses) {
    std::string_view name;
    Metadata metadata;
    for (auto fields = messageOf<Plane>(message); fields.next();) switch (fields.tag_and_type()) {
            case pbTextField(Plane::name):
                name = pbView(fields.get_view());
                break;
            case pbTextField(Plane::statMetadata):
                if (metadata.stats.size() < kMostXNames)
                    metadata.addStatName(pbView(fields.get_view()), m_stats);
                else
                    fields.skip();
                break;
            default:
                fields.skip();
        }
    XStats stats(m_stats.size());
    for (auto fields = messageOf<Plane>(message); nextTextField(fields, Plane::stats);)
        metadata.addStat(pbView(fields.get_view()), stats, m_stats.size());
    if (!visitor.plane(name, stats)) return;
    int64_t cut = 0, unnamed = 0;
    for (auto fields = messageOf<Plane>(message); nextTextField(fields, Plane::eventMetadata);) {
        const std::string_view entry = pbView(fields.get_view());
        if (metadata.events.size() < kMostXNames)
            cut += metadata.addEventName(entry, ++m_nameKeys, m_stats.size());
        else
            ++unnamed;
    }
    if (cut > 0)
        losses.add("bad_block", "info", offsetOf(message), "names of events are cut that have more than 4 KiB", cut);
    if (unnamed > 0 || metadata.stats.size() >= kMostXNames)
        losses.add("bad_block", "warning", offsetOf(message),
                   "a plane names more than 1,048,576 events or stats: those behind that have no name");
    for (auto fields = messageOf<Plane>(message); nextTextField(fields, Plane::lines);) {
        const std::string_view line = pbView(fields.get_view());
        try {
            visitLine(line, metadata, visitor, losses);
        } catch (const protozero::exception&) {
            losses.add("bad_block", "warning", offsetOf(line),
                       "a line is damaged: its events behind that are left out");
        }
    }
}

void XSpace::visitLine(std::string_view message, const Metadata& metadata, XSpaceVisitor& visitor,
                       ImportLosses& losses) {
    XLine line;
    int64_t startNs = 0;
    std::string_view displayName;
    bool isDamaged = false;
    auto fields = messageOf<Line>(message);
    try {
        while (fields.next()) switch (fields.tag_and_type()) {
                case pbNumberField(Line::id):
                    line.id = fields.get_int64();
                    break;
                case pbTextField(Line::name):
                    line.name = pbView(fields.get_view());
                    break;
                case pbTextField(Line::displayName):
                    displayName = pbView(fields.get_view());
                    break;
                case pbNumberField(Line::timestampNs):
                    startNs = fields.get_int64();
                    break;
                default:
                    fields.skip();
            }
    } catch (const protozero::exception&) {
        isDamaged = true;  // told where its events are read to that place
    }
    if (line.name.empty()) line.name = displayName;
    line.name = firstBytes(line.name, kMostXTextBytes);
    if (visitor.line(line)) return visitEvents(message, startNs, metadata, visitor, losses);
    if (isDamaged) throw protozero::exception();
}

void XSpace::visitEvents(std::string_view line, int64_t startNs, const Metadata& metadata, XSpaceVisitor& visitor,
                         ImportLosses& losses) {
    XEvent event;
    for (auto fields = messageOf<Line>(line); nextTextField(fields, Line::events);) {
        int64_t offsetPs = 0, durationPs = 0, id = 0;
        event.stats.assign(m_stats.size(), std::nullopt);
        for (PbMessage<Event> parts = fields.get_message(); parts.next();) switch (parts.tag_and_type()) {
                case pbNumberField(Event::metadataId):
                    id = parts.get_int64();
                    break;
                case pbNumberField(Event::offsetPs):
                    offsetPs = parts.get_int64();
                    break;
                case pbNumberField(Event::durationPs):
                    durationPs = parts.get_int64();
                    break;
                case pbTextField(Event::stats):
                    metadata.addStat(pbView(parts.get_view()), event.stats, m_stats.size());
                    break;
                default:
                    parts.skip();
            }
        if (durationPs < 0 || startNs < -kMostXSpaceNs || startNs > kMostXSpaceNs) {
            losses.add("bad_block", "warning", std::nullopt, "events with times that cannot be are left out");
            continue;
        }
        // Differences of times within the limit are in range; whole nanoseconds keep ends that meet together.
        const int64_t offsetNs = offsetPs / 1000,
                      endNs = offsetNs + (offsetPs % 1000 + durationPs % 1000) / 1000 + durationPs / 1000;
        event.startNs = startNs + offsetNs;
        event.durNs = endNs - offsetNs;
        const auto name = metadata.events.find(id);
        const Metadata::EventName none;
        const Metadata::EventName& known = name == metadata.events.end() ? none : name->second;
        event.nameKey = known.key;
        event.name = known.name;
        event.displayName = known.displayName;
        complete(event.stats, known.stats);
        visitor.event(event);
    }
}

}  // namespace rankscope::collector
