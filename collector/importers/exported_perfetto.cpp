// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "collector/importers/exported_run.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/protobuf_fields.h"
#include "collector/importers/text_window.h"

namespace rankscope::collector {

namespace {

// Perfetto's messages as far as an export of Rankscope uses them (analyzer/export/perfetto_trace.cpp).
enum class Packet : protozero::pbf_tag_type {
    chromeEvents = 5,
    timestamp = 8,
    trackEvent = 11,
    internedData = 12,
    trackDescriptor = 60
};
enum class TrackDescriptor : protozero::pbf_tag_type { uuid = 1, name = 2, process = 3, parent = 5, counter = 8 };
enum class ProcessDescriptor : protozero::pbf_tag_type { pid = 1 };
enum class TrackEvent : protozero::pbf_tag_type {
    categoryIds = 3,
    annotation = 4,
    type = 9,
    nameId = 10,
    track = 11,
    counterValue = 30
};
enum class Annotation : protozero::pbf_tag_type { nameId = 1, integer = 4, string = 6 };
enum class InternedData : protozero::pbf_tag_type { categories = 1, eventNames = 2, annotationNames = 3 };
enum class Interned : protozero::pbf_tag_type { id = 1, name = 2 };
enum class ChromeEvents : protozero::pbf_tag_type { metadata = 2 };
enum class ChromeMetadata : protozero::pbf_tag_type { name = 1, string = 2 };

constexpr int64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;  // TrackEvent.Type
/// What is told of the run is the largest packet.
constexpr uint64_t kMostPacketBytes = uint64_t{256} << 20;
/// Messages of ranges are shorter; each event of a name costs its length.
constexpr size_t kMostInternedBytes = 4096;
/// A tag and a length of up to ten bytes.
constexpr size_t kMostHeadBytes = 11;

class ExportedPerfetto {
  public:
    explicit ExportedPerfetto(const std::filesystem::path& file) : m_input(file), m_window(m_input) {}

    void read(const std::function<void(FileRank)>& take) {
        bool isCut = false;
        while (m_window.require(1)) {
            const std::optional<size_t> size = nextPacket();
            isCut = !size;
            if (isCut) break;
            try {
                readPacket(PbMessage<Packet>(m_window.data(), *size));
            } catch (const protozero::exception&) {
                if (!m_run) break;
                m_run->losses().add("bad_block", "warning", m_window.offset(), "packets that are damaged are left out");
            }
            m_window.advance(*size);
        }
        if (!m_run)
            throw ImportError(m_input.path(), m_window.offset(),
                              "the export is cut off or damaged before its first event", "export the run again");
        for (const auto& [track, open] : m_open) m_unended += static_cast<int64_t>(open.size());
        if (isCut || !m_input.damage().empty() || m_unended > 0)
            m_run->losses().add("torn_tail", "error", m_window.offset(),
                                "the file is cut off" +
                                    (m_input.damage().empty() ? std::string() : " (" + m_input.damage() + ")") +
                                    "; the events in front of that are imported, and " + std::to_string(m_unended) +
                                    " of them without their end");
        m_run->handOver(take);
    }

  private:
    /// Moves to the packet at the front of the window and returns its size; nothing where there is none that is whole.
    std::optional<size_t> nextPacket() {
        constexpr char kPacketTag = 1 << 3 | 2;
        m_window.require(kMostHeadBytes);
        if (m_window.data()[0] != kPacketTag) return std::nullopt;
        const char* at = m_window.data() + 1;
        uint64_t size = 0;
        try {
            size = protozero::decode_varint(&at, m_window.data() + m_window.size());
        } catch (const protozero::exception&) {
            return std::nullopt;
        }
        const auto head = static_cast<size_t>(at - m_window.data());
        if (size > kMostPacketBytes || !m_window.require(head + size)) return std::nullopt;
        m_window.advance(head);
        return size;
    }

    void readPacket(PbMessage<Packet> packet) {
        uint64_t timeNs = 0;
        protozero::data_view event;
        while (packet.next()) switch (packet.tag_and_type()) {
                case pbTextField(Packet::chromeEvents):
                    readAbout(packet.get_message());
                    break;
                case pbNumberField(Packet::timestamp):
                    timeNs = packet.get_uint64();
                    break;
                case pbTextField(Packet::internedData):
                    readTexts(packet.get_message());
                    break;
                case pbTextField(Packet::trackDescriptor):
                    readTrack(packet.get_message());
                    break;
                case pbTextField(Packet::trackEvent):
                    event = packet.get_view();
                    break;
                default:
                    packet.skip();
            }
        if (event.data() != nullptr && m_run) readEvent(PbMessage<TrackEvent>(event), static_cast<int64_t>(timeNs));
    }

    void readAbout(PbMessage<ChromeEvents> events) {
        while (nextTextField(events, ChromeEvents::metadata)) {
            PbMessage<ChromeMetadata> metadata = events.get_message();
            std::string_view name, text;
            while (metadata.next()) switch (metadata.tag_and_type()) {
                    case pbTextField(ChromeMetadata::name):
                        name = pbView(metadata.get_view());
                        break;
                    case pbTextField(ChromeMetadata::string):
                        text = pbView(metadata.get_view());
                        break;
                    default:
                        metadata.skip();
                }
            if (name == "rankscope_run" && !m_run)
                m_run.emplace(m_input.path(), readExportedAbout(m_input.path(), text));
        }
    }

    void readTexts(PbMessage<InternedData> data) {
        while (data.next()) {
            const auto kind = data.tag();
            if (data.wire_type() != protozero::pbf_wire_type::length_delimited ||
                (kind != InternedData::categories && kind != InternedData::eventNames &&
                 kind != InternedData::annotationNames)) {
                data.skip();
                continue;
            }
            PbMessage<Interned> one = data.get_message();
            uint64_t id = 0;
            std::string text;
            while (one.next()) switch (one.tag_and_type()) {
                    case pbNumberField(Interned::id):
                        id = one.get_uint64();
                        break;
                    case pbTextField(Interned::name):
                        text = nameOf(pbView(one.get_view()));
                        break;
                    default:
                        one.skip();
                }
            textsOf(kind)[id] = std::move(text);
        }
    }

    std::string_view nameOf(std::string_view text) {
        if (text.size() <= kMostInternedBytes) return text;
        if (m_run)
            m_run->losses().add("bad_block", "info", m_window.offset(), "names are cut that have more than 4 KiB");
        return firstBytes(text, kMostInternedBytes);
    }

    std::map<uint64_t, std::string>& textsOf(InternedData kind) {
        return kind == InternedData::categories   ? m_categories
               : kind == InternedData::eventNames ? m_names
                                                  : m_arguments;
    }

    static std::string_view textOf(const std::map<uint64_t, std::string>& texts, uint64_t id) {
        const auto found = texts.find(id);
        return found == texts.end() ? std::string_view() : found->second;
    }

    void readTrack(PbMessage<TrackDescriptor> track) {
        uint64_t uuid = 0, parent = 0;
        std::optional<int64_t> process;
        std::string name;
        bool isCounter = false;
        while (track.next()) switch (track.tag_and_type()) {
                case pbTextField(TrackDescriptor::name):
                    name = nameOf(pbView(track.get_view()));
                    break;
                case pbTextField(TrackDescriptor::counter):
                    isCounter = true;
                    track.skip();
                    break;
                case pbNumberField(TrackDescriptor::uuid):
                    uuid = track.get_uint64();
                    break;
                case pbNumberField(TrackDescriptor::parent):
                    parent = track.get_uint64();
                    break;
                case pbTextField(TrackDescriptor::process): {
                    PbMessage<ProcessDescriptor> described = track.get_message();
                    while (described.next(ProcessDescriptor::pid, protozero::pbf_wire_type::varint))
                        process = int64_t{described.get_int32()} - 1;
                    break;
                }
                default:
                    track.skip();
            }
        if (process && m_run) m_run->addRank(*process);
        if (isCounter && name != "step time") m_counters[uuid] = std::move(name);  // steps are found anew
        m_processOf[uuid] = process ? *process : m_processOf.contains(parent) ? m_processOf[parent] : -1;
    }

    void readEvent(PbMessage<TrackEvent> event, int64_t timeNs) {
        ToldEvent told;
        int64_t type = 0, value = 0;
        uint64_t track = 0;
        while (event.next()) switch (event.tag_and_type()) {
                case pbNumberField(TrackEvent::type):
                    type = event.get_enum();
                    break;
                case pbNumberField(TrackEvent::track):
                    track = event.get_uint64();
                    break;
                case pbNumberField(TrackEvent::counterValue):
                    value = event.get_int64();
                    break;
                case pbNumberField(TrackEvent::nameId):
                    told.name = textOf(m_names, event.get_uint64());
                    break;
                case pbNumberField(TrackEvent::categoryIds):
                    told.category = textOf(m_categories, event.get_uint64());
                    break;
                case pbTextField(TrackEvent::annotation):
                    readAnnotation(event.get_message(), told);
                    break;
                default:
                    event.skip();
            }
        if (type == kCounter) {
            const auto counter = m_counters.find(track);
            if (counter != m_counters.end()) m_run->addCounter(m_processOf[track], counter->second, timeNs, value);
            return;
        }
        std::vector<Open>& open = m_open[track];
        if (type == kSliceEnd) {
            if (open.empty()) return;
            int64_t tookNs = 0;
            if (!__builtin_sub_overflow(timeNs, open.back().startNs, &tookNs))
                m_run->setDuration(open.back().place, tookNs);
            open.pop_back();
            return;
        }
        if (type != kSliceBegin && type != kInstant) return;
        told.process = m_processOf.contains(track) ? m_processOf[track] : -1;
        told.startNs = timeNs;
        if (type == kSliceBegin) told.durNs = 0;
        // Waiting and transfer stand inside a kernel of NCCL, which tells them as well.
        const bool isPart = told.category == "nccl_kernel" && told.arguments.empty();
        const ExportedRun::Place place = isPart ? ExportedRun::Place() : m_run->add(told);
        if (type == kSliceBegin) open.push_back({place, timeNs});
    }

    void readAnnotation(PbMessage<Annotation> annotation, ToldEvent& event) const {
        std::string_view name;
        ToldValue value;
        while (annotation.next()) switch (annotation.tag_and_type()) {
                case pbNumberField(Annotation::nameId):
                    name = textOf(m_arguments, annotation.get_uint64());
                    break;
                case pbNumberField(Annotation::integer):
                    value.number = annotation.get_int64();
                    break;
                case pbTextField(Annotation::string):
                    value.text = pbView(annotation.get_view());
                    break;
                default:
                    annotation.skip();
            }
        event.arguments.emplace_back(name, value);
    }

    struct Open {
        ExportedRun::Place place;
        int64_t startNs = 0;
    };

    InputFile m_input;
    TextWindow m_window;
    std::optional<ExportedRun> m_run;
    std::map<uint64_t, std::string> m_categories, m_names, m_arguments;
    std::map<uint64_t, std::string> m_counters;    // names, by track
    std::map<uint64_t, int64_t> m_processOf;       // by track
    std::map<uint64_t, std::vector<Open>> m_open;  // slices of a track that have not ended
    int64_t m_unended = 0;
};

}  // namespace

void readExportedPerfetto(const std::filesystem::path& file, const std::function<void(FileRank)>& take) {
    ExportedPerfetto(file).read(take);
}

}  // namespace rankscope::collector
