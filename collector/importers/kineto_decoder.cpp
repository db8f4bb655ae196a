// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_decoder.h"

#include <cstring>

#include "collector/importers/exact_number.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/kineto_parts.h"

namespace rankscope::collector {

namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::raw_json_string;
using simdjson::ondemand::value;

/// Compares a key with a literal, closing quote included. The bytes behind the key are readable: the text is padded.
template <size_t N>
bool isKey(const char* key, const char (&literal)[N]) {
    return std::memcmp(key, literal, N - 1) == 0 && key[N - 1] == '"';
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && isJsonSpace(text.back())) text.remove_suffix(1);
    return text;
}

std::string_view token(value& from) {
    return trimmed(from.raw_json_token());
}

/// A text value unescaped; one with an escape that JSON does not know ("C:\x") is taken as it stands. Empty for
/// anything but a text.
std::string_view textOf(value& from) {
    const std::string_view raw = token(from);
    if (raw.empty() || raw.front() != '"') return {};
    std::string_view text;
    if (from.get_string().get(text) == simdjson::SUCCESS) return text;
    return raw.size() >= 2 ? raw.substr(1, raw.size() - 2) : std::string_view{};
}

/// A number's text, also when the writer put it in quotes ("size": "2560").
std::string_view numberText(value& from) {
    std::string_view raw = token(from);
    if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') raw = raw.substr(1, raw.size() - 2);
    return raw;
}

std::optional<int64_t> integerOf(value& from) {
    return integerFromText(numberText(from));
}

/// "grid": [x, y, z] as x * y * z, saturated; empty when it is no array of numbers. `ok` turns false when the JSON is
/// damaged.
std::optional<int64_t> productOf(value& from, bool& ok) {
    if (token(from).substr(0, 1) != "[") return std::nullopt;
    simdjson::ondemand::array list;
    if (from.get_array().get(list) != simdjson::SUCCESS) return std::nullopt;
    int64_t product = 1;
    for (auto item : list) {
        value element;
        if (item.get(element) != simdjson::SUCCESS) {
            ok = false;
            return std::nullopt;
        }
        const auto factor = integerFromText(trimmed(element.raw_json_token()));
        if (!factor || *factor < 0) return std::nullopt;
        if (__builtin_mul_overflow(product, *factor, &product)) product = INT64_MAX;
    }
    return product;
}

/// The raw text of a nested value.
std::string_view rawOf(value& from, bool& ok) {
    const std::string_view first = token(from);
    if (first.substr(0, 1) == "\"") return first;
    if (first.substr(0, 1) != "[") return {};
    simdjson::ondemand::array list;
    std::string_view raw;
    if (from.get_array().get(list) != simdjson::SUCCESS || list.raw_json().get(raw) != simdjson::SUCCESS) {
        ok = false;
        return {};
    }
    return trimmed(raw);
}

KinetoCategory categoryOf(std::string_view text) {
    switch (text.size()) {
        case 5:
            if (text == "Trace") return KinetoCategory::other;
            break;
        case 6:
            if (text == "kernel" || text == "Kernel") return KinetoCategory::kernel;
            if (text == "cpu_op") return KinetoCategory::commParameters;
            if (text == "Memcpy") return KinetoCategory::memcpy;
            if (text == "Memset") return KinetoCategory::memset;
            break;
        default:
            break;
    }
    if (text == "Operator") return KinetoCategory::commParameters;
    if (text == "gpu_memcpy") return KinetoCategory::memcpy;
    if (text == "gpu_memset") return KinetoCategory::memset;
    if (text == "Runtime" || text == "runtime") return KinetoCategory::runtimeCall;
    if (text.ends_with("_runtime")) return KinetoCategory::runtimeCall;  // cuda, hip, xpu, mtia, privateuse1
    if (text == "driver" || text.ends_with("_driver")) return KinetoCategory::driverCall;
    if (text == "python_function") return KinetoCategory::pythonFunction;
    if (text == "cuda_sync" || text == "synchronization") return KinetoCategory::synchronization;
    if (text == "cpu_instant_event") return KinetoCategory::memory;
    if (text == "user_annotation") return KinetoCategory::annotation;
    if (text == "gpu_user_annotation") return KinetoCategory::gpuAnnotation;
    if (text.starts_with("gpu_") || text.starts_with("mtia_") || text == "hpu_op") return KinetoCategory::unknownGpu;
    return KinetoCategory::other;
}

KinetoPlatform platformOf(std::string_view category) {
    if (category.starts_with("hip_")) return KinetoPlatform::amd;
    if (category.starts_with("xpu_")) return KinetoPlatform::intel;
    if (category.starts_with("mtia_")) return KinetoPlatform::mtia;
    if (category.starts_with("privateuse1_") || category == "hpu_op") return KinetoPlatform::other;
    return KinetoPlatform::unknown;
}

bool decodeArgs(object args, KinetoEvent& event) {
    bool ok = true;
    for (auto item : args) {
        raw_json_string rawKey;
        value field;
        if (item.key().get(rawKey) != simdjson::SUCCESS || item.value().get(field) != simdjson::SUCCESS) return false;
        const char* key = rawKey.raw();
        switch (key[0]) {
            case 'b':
                if (isKey(key, "bytes")) event.bytes = integerOf(field);
                if (isKey(key, "block")) event.blockThreads = productOf(field, ok);
                break;
            case 'c':
                if (isKey(key, "correlation")) event.correlation = integerOf(field);
                if (isKey(key, "context")) event.context = integerOf(field);
                if (isKey(key, "cuda_sync_kind")) event.syncKind = textOf(field);
                break;
            case 'd':
                if (isKey(key, "device")) event.device = integerOf(field);
                if (isKey(key, "dtype")) event.dataType = textOf(field);
                break;
            case 'e':
                if (isKey(key, "event_id")) event.eventId = integerOf(field);
                if (isKey(key, "external id")) event.externalId = integerOf(field);
                break;
            case 'g':
                if (isKey(key, "grid")) event.gridBlocks = productOf(field, ok);
                if (isKey(key, "graph node id")) event.graphNode = integerOf(field);
                break;
            case 'k':
                if (isKey(key, "kind")) event.copyKind = textOf(field);
                break;
            case 'l':
                if (isKey(key, "labels")) event.argsName = textOf(field);
                break;
            case 'n':
                if (isKey(key, "name")) event.argsName = textOf(field);
                break;
            case 's':
                if (isKey(key, "stream")) event.stream = integerOf(field);
                if (isKey(key, "size") && !event.bytes) event.bytes = integerOf(field);
                break;
            case 'C':
                if (isKey(key, "Collective name")) event.collective = textOf(field);
                break;
            case 'D':
                if (isKey(key, "Dst Rank")) event.destinationRank = integerOf(field);
                if (isKey(key, "Device Id")) event.device = integerOf(field);
                if (isKey(key, "Device Type")) event.deviceType = integerOf(field);
                break;
            case 'E':
                if (isKey(key, "External id")) event.externalId = integerOf(field);
                break;
            case 'G':
                if (isKey(key, "Group size")) event.groupSize = integerOf(field);
                if (isKey(key, "Global rank start")) event.groupStart = integerOf(field);
                if (isKey(key, "Global rank stride")) event.groupStride = integerOf(field);
                break;
            case 'I':
                if (isKey(key, "In msg nelems")) event.inElements = integerOf(field);
                if (isKey(key, "Input Dims")) event.inputDims = rawOf(field, ok);
                if (isKey(key, "Input type")) event.inputType = rawOf(field, ok);
                break;
            case 'O':
                if (isKey(key, "Out msg nelems")) event.outElements = integerOf(field);
                break;
            case 'P':
                if (isKey(key, "Process Group Name")) event.groupName = textOf(field);
                if (isKey(key, "Process Group Description")) event.groupDescription = textOf(field);
                if (isKey(key, "Process Group Ranks"))
                    event.groupRanks = token(field).substr(0, 1) == "[" ? rawOf(field, ok) : textOf(field);
                break;
            case 'S':
                if (isKey(key, "Src Rank")) event.sourceRank = integerOf(field);
                if (isKey(key, "Seq")) event.sequence = integerOf(field);
                break;
            case 'T':
                if (isKey(key, "Total Allocated")) event.totalAllocated = integerOf(field);
                if (isKey(key, "Total Reserved")) event.totalReserved = integerOf(field);
                break;
            default:
                break;
        }
        if (!ok) return false;
    }
    return true;
}

/// "[R0] 4711": the label and the process' number.
void splitProcess(std::string_view text, KinetoEvent& event) {
    event.label = mergeLabel(text);
    if (event.label.empty()) return;
    const size_t space = text.rfind(' ');
    if (space != std::string_view::npos) event.pid = integerFromText(text.substr(space + 1));
}

/// Operators are alike but for record_param_comms, and for profiler steps of old versions, which came as operators.
KinetoCategory operatorCategory(std::string_view name) {
    if (name == "record_param_comms") return KinetoCategory::commParameters;
    return name.starts_with("ProfilerStep#") ? KinetoCategory::annotation : KinetoCategory::operation;
}

bool isPlain(KinetoCategory category) {
    return category == KinetoCategory::operation || category == KinetoCategory::pythonFunction;
}

}  // namespace

DecodeResult decodeKinetoEvent(object fields, KinetoEvent& event) {
    event = KinetoEvent{};
    bool categoryKnown = false;
    bool nameKnown = false;
    for (auto item : fields) {
        raw_json_string rawKey;
        value field;
        if (item.key().get(rawKey) != simdjson::SUCCESS || item.value().get(field) != simdjson::SUCCESS)
            return DecodeResult::broken;
        const char* key = rawKey.raw();
        if (isKey(key, "ph")) {
            const std::string_view phase = token(field);
            event.phase = phase.size() >= 2 && phase[0] == '"' ? phase[1] : '?';
            if (event.phase == 'M') {
                event.category = KinetoCategory::metadata;
                categoryKnown = true;
            } else if (event.phase != 'X' && event.phase != 'i') {
                return DecodeResult::skipped;
            }
        } else if (isKey(key, "cat")) {
            const std::string_view raw = token(field);
            if (event.category != KinetoCategory::metadata && raw.size() >= 2) {
                event.category = categoryOf(raw.substr(1, raw.size() - 2));
                event.platform = platformOf(raw.substr(1, raw.size() - 2));
                categoryKnown = true;
                if (event.category == KinetoCategory::other) return DecodeResult::skipped;
                if (event.category == KinetoCategory::commParameters && nameKnown)
                    event.category = operatorCategory(event.name);
            }
        } else if (isKey(key, "name")) {
            event.name = textOf(field);
            nameKnown = true;
            if (event.category == KinetoCategory::commParameters) event.category = operatorCategory(event.name);
        } else if (isKey(key, "ts")) {
            const auto time = nanosecondsFromMicroseconds(numberText(field));
            event.hasTime = time.has_value();
            event.badNumber |= !time.has_value();
            event.startNs = time.value_or(0);
        } else if (isKey(key, "dur")) {
            const auto duration = nanosecondsFromMicroseconds(numberText(field));
            event.badNumber |= !duration.has_value();
            event.durNs = duration.value_or(0);
        } else if (isKey(key, "pid")) {
            event.pid = integerOf(field);
            if (!event.pid) splitProcess(textOf(field), event);
        } else if (isKey(key, "tid")) {
            event.tid = integerOf(field);
        } else if (isKey(key, "args")) {
            if (isPlain(event.category)) continue;  // most events of a trace: nothing in them is needed
            if (token(field).substr(0, 1) != "{") continue;
            object args;
            if (field.get_object().get(args) != simdjson::SUCCESS || !decodeArgs(args, event))
                return DecodeResult::broken;
        }
    }
    if (!categoryKnown || event.phase == 0) return DecodeResult::skipped;
    if (event.phase == 'i' && event.category != KinetoCategory::memory) return DecodeResult::skipped;
    return DecodeResult::event;
}

}  // namespace rankscope::collector
