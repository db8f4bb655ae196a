// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <protozero/pbf_builder.hpp>
#include <unordered_map>
#include <vector>

#include "analyzer/export/exported_event.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::exports {
namespace {

// Perfetto's messages as far as they are written, with their fields' numbers (perfetto.dev, protos/perfetto/trace:
// trace.proto, trace_packet.proto, track_event/*.proto, interned_data/interned_data.proto,
// chrome/chrome_trace_event.proto).
enum class Trace : protozero::pbf_tag_type { packet = 1 };
enum class Packet : protozero::pbf_tag_type {
    chromeEvents = 5,
    timestamp = 8,
    sequence = 10,
    trackEvent = 11,
    internedData = 12,
    sequenceFlags = 13,
    trackDescriptor = 60
};
enum class TrackDescriptor : protozero::pbf_tag_type {
    uuid = 1,
    name = 2,
    process = 3,
    parent = 5,
    counter = 8,
    childOrdering = 11,
    siblingRank = 12
};
enum class ProcessDescriptor : protozero::pbf_tag_type { pid = 1, name = 6 };
enum class CounterDescriptor : protozero::pbf_tag_type { unit = 3, unitName = 6 };
enum class TrackEvent : protozero::pbf_tag_type {
    categoryIds = 3,
    annotation = 4,
    type = 9,
    nameId = 10,
    track = 11,
    counterValue = 30,
    flows = 47,
    endingFlows = 48
};
enum class Annotation : protozero::pbf_tag_type { nameId = 1, integer = 4, string = 6 };
enum class InternedData : protozero::pbf_tag_type { categories = 1, eventNames = 2, annotationNames = 3 };
enum class Interned : protozero::pbf_tag_type { id = 1, name = 2 };

enum class ChromeEvents : protozero::pbf_tag_type { metadata = 2 };
enum class ChromeMetadata : protozero::pbf_tag_type { name = 1, string = 2 };

constexpr int kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;  // TrackEvent.Type
constexpr uint32_t kStateCleared = 1, kNeedsState = 2;                     // TracePacket.SequenceFlags
constexpr int kUnitUnspecified = 0;                                        // CounterDescriptor.Unit
constexpr int kExplicitOrder = 3;                                          // TrackDescriptor.ChildTracksOrdering
constexpr uint32_t kSequence = 1;                                          // the only writer

template <typename Tag>
using Message = protozero::pbf_builder<Tag>;

/// Texts by their ids, which a packet tells before it first uses them.
class Dictionary {
  public:
    /// The id of a text; `isNew` where it has just got it.
    uint64_t of(std::string_view text, bool& isNew) {
        const auto [at, inserted] = m_ids.try_emplace(std::string(text), m_ids.size() + 1);
        isNew = inserted;
        return at->second;
    }

  private:
    std::unordered_map<std::string, uint64_t> m_ids;
};

class PerfettoTrace : public ExportSink {
  public:
    PerfettoTrace(std::ostream& out, const std::string& about) : m_out(out) {
        packet([&](Message<Packet>& packet) {
            Message<ChromeEvents> events(packet, Packet::chromeEvents);
            Message<ChromeMetadata> metadata(events, ChromeEvents::metadata);
            metadata.add_string(ChromeMetadata::name, "rankscope_run");
            metadata.add_string(ChromeMetadata::string, about);
        });
    }

    void process(const ExportedProcess& process) override {
        const uint64_t uuid = m_processes[process.id] = ++m_uuids;
        describe([&](Message<TrackDescriptor>& track) {
            track.add_uint64(TrackDescriptor::uuid, uuid);
            track.add_enum(TrackDescriptor::childOrdering, kExplicitOrder);
            Message<ProcessDescriptor> described(track, TrackDescriptor::process);
            // Number 0 is the idle process of a machine.
            described.add_int32(ProcessDescriptor::pid, static_cast<int32_t>(process.id + 1));
            described.add_string(ProcessDescriptor::name, text::plainText(process.name));
        });
    }

    void track(const ExportedTrack& track) override {
        Track& own = m_tracks[{track.process, track.id}];
        own.uuid = ++m_uuids;
        describe([&](Message<TrackDescriptor>& described) {
            described.add_uint64(TrackDescriptor::uuid, own.uuid);
            described.add_uint64(TrackDescriptor::parent, m_processes[track.process]);
            described.add_string(TrackDescriptor::name, text::plainText(track.name));
            described.add_int32(TrackDescriptor::siblingRank, static_cast<int32_t>(own.uuid));
        });
    }

    void event(const ExportedTrack& track, const ExportedEvent& event) override {
        Track& own = m_tracks[{track.process, track.id}];
        close(own, event.startNs);
        begin(own, event, event.durNs ? kSliceBegin : kInstant);
        if (event.durNs) {
            if (event.waitNs && event.transferNs && *event.waitNs >= 0 && *event.waitNs <= *event.durNs) {
                part(own, "waiting for other ranks", event.startNs, event.startNs + *event.waitNs);
                part(own, "transfer", event.startNs + *event.waitNs, event.startNs + *event.durNs);
            }
            own.open.push_back(event.startNs + *event.durNs);
        }
        if (event.kind == EventKind::step && event.durNs) count(track.process, kStepTime, event.startNs, *event.durNs);
        if (m_buffer.size() > kFlushBytes) flush();
    }

    void counter(int64_t process, std::string_view name, int64_t ns, int64_t value) override {
        count(process, name, ns, value);
        if (m_buffer.size() > kFlushBytes) flush();
    }

    void finish() override {
        for (auto& [key, track] : m_tracks) close(track, std::numeric_limits<int64_t>::max());
        flush();
        m_out.flush();
    }

  private:
    static constexpr size_t kFlushBytes = 1 << 20;
    static constexpr std::string_view kStepTime = "step time";

    struct Track {
        uint64_t uuid = 0;
        std::vector<int64_t> open;  // ends of the events that are not closed, the innermost last
    };

    /// Appends a packet; `fill` writes what it holds.
    template <typename Fill>
    void packet(Fill fill) {
        Message<Trace> trace(m_buffer);
        Message<Packet> packet(trace, Trace::packet);
        packet.add_uint32(Packet::sequence, kSequence);
        packet.add_uint32(Packet::sequenceFlags, m_isFirst ? kStateCleared | kNeedsState : kNeedsState);
        m_isFirst = false;
        fill(packet);
    }

    template <typename Fill>
    void describe(Fill fill) {
        packet([&](Message<Packet>& packet) {
            Message<TrackDescriptor> track(packet, Packet::trackDescriptor);
            fill(track);
        });
    }

    /// A packet's time; the job clock begins with the first event, and what lies before it, at 0.
    static uint64_t timeOf(int64_t ns) { return static_cast<uint64_t>(std::max<int64_t>(0, ns)); }

    struct NewText {
        InternedData kind;
        uint64_t id;
        std::string text;
    };

    uint64_t interned(Dictionary& dictionary, InternedData kind, std::string_view text, std::vector<NewText>& fresh) {
        bool isNew = false;
        const std::string plain = text::plainText(text);
        const uint64_t id = dictionary.of(plain, isNew);
        if (isNew) fresh.push_back({kind, id, plain});
        return id;
    }

    void tell(Message<Packet>& packet, const std::vector<NewText>& fresh) {
        if (fresh.empty()) return;
        Message<InternedData> data(packet, Packet::internedData);
        for (const auto& [kind, id, text] : fresh) {
            Message<Interned> one(data, kind);
            one.add_uint64(Interned::id, id);
            one.add_string(Interned::name, text);
        }
    }

    void begin(const Track& track, const ExportedEvent& event, int type) {
        std::vector<NewText> fresh;
        const uint64_t name = interned(m_names, InternedData::eventNames, event.name, fresh);
        const uint64_t category = interned(m_categories, InternedData::categories, toText(event.kind), fresh);
        struct Told {
            uint64_t nameId;
            std::optional<int64_t> number;
            std::string text;
        };
        std::vector<Told> annotations;
        const auto annotate = [&](const char* what, const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::optional<int64_t>>) {
                if (value)
                    annotations.push_back(
                        {interned(m_annotations, InternedData::annotationNames, what, fresh), value, {}});
            } else if (!value.empty()) {
                annotations.push_back({interned(m_annotations, InternedData::annotationNames, what, fresh),
                                       std::nullopt, text::plainText(value)});
            }
        };
        forEachDetail(event, annotate);
        packet([&](Message<Packet>& packet) {
            packet.add_uint64(Packet::timestamp, timeOf(event.startNs));
            tell(packet, fresh);
            Message<TrackEvent> written(packet, Packet::trackEvent);
            written.add_enum(TrackEvent::type, type);
            written.add_uint64(TrackEvent::track, track.uuid);
            written.add_uint64(TrackEvent::nameId, name);
            written.add_uint64(TrackEvent::categoryIds, category);
            for (const ExportedFlow& flow : event.flows)
                written.add_fixed64(
                    flow.place == ExportedFlow::Place::last ? TrackEvent::endingFlows : TrackEvent::flows, flow.id);
            for (const Told& told : annotations) {
                Message<Annotation> annotation(written, TrackEvent::annotation);
                annotation.add_uint64(Annotation::nameId, told.nameId);
                if (told.number)
                    annotation.add_int64(Annotation::integer, *told.number);
                else
                    annotation.add_string(Annotation::string, told.text);
            }
        });
    }

    void end(const Track& track, int64_t ns) {
        packet([&](Message<Packet>& packet) {
            packet.add_uint64(Packet::timestamp, timeOf(ns));
            Message<TrackEvent> written(packet, Packet::trackEvent);
            written.add_enum(TrackEvent::type, kSliceEnd);
            written.add_uint64(TrackEvent::track, track.uuid);
        });
    }

    /// A slice inside the event that was begun last.
    void part(const Track& track, const char* name, int64_t startNs, int64_t endNs) {
        if (endNs <= startNs) return;
        ExportedEvent event;
        event.kind = EventKind::ncclKernel;
        event.name = name;
        event.startNs = startNs;
        begin(track, event, kSliceBegin);
        end(track, endNs);
    }

    /// Ends what has ended when something begins at `ns`: a slice ends before one that begins at its end.
    void close(Track& track, int64_t ns) {
        while (!track.open.empty() && track.open.back() <= ns) {
            end(track, track.open.back());
            track.open.pop_back();
        }
    }

    /// A point of a curve of a rank.
    void count(int64_t process, std::string_view name, int64_t ns, int64_t value) {
        uint64_t& uuid = m_counters[{process, std::string(name)}];
        if (uuid == 0) {
            uuid = ++m_uuids;
            describe([&](Message<TrackDescriptor>& track) {
                track.add_uint64(TrackDescriptor::uuid, uuid);
                track.add_uint64(TrackDescriptor::parent, m_processes[process]);
                track.add_string(TrackDescriptor::name, text::plainText(name));
                Message<CounterDescriptor> counter(track, TrackDescriptor::counter);
                if (name == kStepTime)
                    counter.add_string(CounterDescriptor::unitName, "ns");
                else
                    counter.add_enum(CounterDescriptor::unit, kUnitUnspecified);  // an empty message is not written
            });
        }
        packet([&](Message<Packet>& packet) {
            packet.add_uint64(Packet::timestamp, timeOf(ns));
            Message<TrackEvent> written(packet, Packet::trackEvent);
            written.add_enum(TrackEvent::type, kCounter);
            written.add_uint64(TrackEvent::track, uuid);
            written.add_int64(TrackEvent::counterValue, value);
        });
    }

    void flush() {
        m_out.write(m_buffer.data(), static_cast<std::streamsize>(m_buffer.size()));
        m_buffer.clear();
    }

    std::ostream& m_out;
    std::string m_buffer;
    bool m_isFirst = true;
    uint64_t m_uuids = 0;
    std::map<int64_t, uint64_t> m_processes;                         // by process
    std::map<std::pair<int64_t, std::string>, uint64_t> m_counters;  // by process and name
    std::map<std::pair<int64_t, int64_t>, Track> m_tracks;
    Dictionary m_names, m_categories, m_annotations;
};

}  // namespace

std::unique_ptr<ExportSink> perfettoTrace(std::ostream& out, const std::string& about) {
    return std::make_unique<PerfettoTrace>(out, about);
}

}  // namespace rankscope::exports
