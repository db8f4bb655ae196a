// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_header.h"

#include <simdjson.h>

#include "collector/importers/exact_number.h"
#include "collector/importers/json_scan.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

std::optional<int64_t> integerAt(element object, const char* key) {
    int64_t value = 0;
    if (object[key].get_int64().get(value) == simdjson::SUCCESS) return value;
    uint64_t large = 0;
    if (object[key].get_uint64().get(large) == simdjson::SUCCESS) return static_cast<int64_t>(large);
    std::string_view text;
    if (object[key].get_string().get(text) == simdjson::SUCCESS) return integerFromText(text);
    return std::nullopt;
}

std::string textAt(element object, const char* key) {
    std::string_view text;
    if (object[key].get_string().get(text) != simdjson::SUCCESS) return {};
    return std::string(text);
}

void readDistributedInfo(element info, KinetoHeader& header) {
    header.rank = integerAt(info, "rank");
    header.worldSize = integerAt(info, "world_size");
    header.ncclVersion = textAt(info, "nccl_version");
    simdjson::dom::array groups;
    if (info["pg_config"].get_array().get(groups) != simdjson::SUCCESS) return;
    for (element group : groups) {
        KinetoProcessGroup read;
        read.name = textAt(group, "pg_name");
        simdjson::dom::array ranks;
        if (group["ranks"].get_array().get(ranks) == simdjson::SUCCESS) {
            for (element rank : ranks) {
                int64_t number = 0;
                if (rank.get_int64().get(number) == simdjson::SUCCESS) read.ranks.push_back(number);
            }
        }
        header.groups.push_back(std::move(read));
    }
}

void readDevices(element list, KinetoHeader& header) {
    simdjson::dom::array devices;
    if (list.get_array().get(devices) != simdjson::SUCCESS) return;
    for (element device : devices) {
        KinetoDevice read;
        const auto ordinal = integerAt(device, "id");
        if (!ordinal) continue;
        read.ordinal = *ordinal;
        read.name = textAt(device, "name");
        read.memoryBytes = integerAt(device, "totalGlobalMem");
        read.multiprocessors = integerAt(device, "numSms");
        const auto major = integerAt(device, "computeMajor");
        if (major) read.computeCapability = *major * 10 + integerAt(device, "computeMinor").value_or(0);
        header.devices.push_back(std::move(read));
    }
}

}  // namespace

bool isKinetoHeaderMember(std::string_view key) {
    return key == "distributedInfo" || key == "deviceProperties" || key == "baseTimeNanoseconds" || key == "hostname" ||
           key == "host_name";
}

bool readKinetoHeaderMember(std::string_view key, std::string_view json, KinetoHeader& header) {
    if (key == "baseTimeNanoseconds") {
        if (json.size() >= 2 && json.front() == '"') json = json.substr(1, json.size() - 2);
        const auto base = integerFromText(json);
        if (base) header.baseTimeNs = *base;
        return base.has_value();
    }
    size_t firstInvalid = 0;
    size_t invalid = 0;
    simdjson::dom::parser parser;
    element value;
    if (parser.parse(sanitiseUtf8(json, firstInvalid, invalid)).get(value) != simdjson::SUCCESS) return false;
    if (key == "distributedInfo") readDistributedInfo(value, header);
    if (key == "deviceProperties") readDevices(value, header);
    if (key == "hostname" || key == "host_name") {
        std::string_view text;
        if (value.get_string().get(text) == simdjson::SUCCESS) header.hostName = std::string(text);
    }
    return true;
}

}  // namespace rankscope::collector
