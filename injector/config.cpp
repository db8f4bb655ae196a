// SPDX-License-Identifier: Apache-2.0
#include "injector/config.h"

#include "injector/text.h"

namespace rankscope::injector {
namespace {

void complain(Config& config, const char* name) noexcept {
    if (config.problem[0] == '\0') copyText(config.problem, name);
}

bool isWord(const char* word, size_t length, const char* expected) noexcept {
    return length == std::strlen(expected) && std::strncmp(word, expected, length) == 0;
}

void readTrace(Config& config, const char* text) noexcept {
    uint32_t trace = 0;
    while (*text != '\0') {
        const size_t length = std::strcspn(text, ",");
        if (isWord(text, length, "cuda"))
            trace |= traceCuda;
        else if (isWord(text, length, "nccl"))
            trace |= traceNccl;
        else if (isWord(text, length, "nvtx"))
            trace |= traceNvtx;
        else if (isWord(text, length, "api"))
            trace |= traceApi;
        else if (length != 0 && !isWord(text, length, "none"))
            complain(config, "RANKSCOPE_TRACE");
        text += length;
        if (*text == ',') ++text;
    }
    config.trace = trace;
}

void readRange(Config& config, const char* text) noexcept {
    if (std::strcmp(text, "none") == 0 || *text == '\0') return;
    if (std::strcmp(text, "cudaProfilerApi") == 0) {
        config.range = CaptureRange::cudaProfilerApi;
        return;
    }
    if (startsWith(text, "nvtx:") && text[5] != '\0') {
        config.range = CaptureRange::nvtxRange;
        copyText(config.rangeName, text + 5);
        return;
    }
    if (startsWith(text, "steps:")) {
        char first[24] = {};
        const char* numbers = text + 6;
        const size_t length = std::strcspn(numbers, "-");
        if (length < sizeof first && numbers[length] == '-') {
            std::memcpy(first, numbers, length);
            int64_t a = 0;
            int64_t b = 0;
            if (parseNumber(first, a) && parseNumber(numbers + length + 1, b) && a >= 0 && b >= a) {
                config.range = CaptureRange::steps;
                config.firstStep = a;
                config.lastStep = b;
                return;
            }
        }
    }
    complain(config, "RANKSCOPE_CAPTURE_RANGE");
}

}  // namespace

Config readConfig(const char* (*get)(const char* name)) noexcept {
    Config config;
    if (const char* directory = get("RANKSCOPE_DIR")) {
        if (directory[0] == '/' && std::strlen(directory) < sizeof config.directory)
            copyText(config.directory, directory);
        else if (directory[0] != '\0')
            complain(config, "RANKSCOPE_DIR");
    }
    if (const char* trace = get("RANKSCOPE_TRACE")) readTrace(config, trace);
    if (const char* text = get("RANKSCOPE_MAX_BYTES")) {
        int64_t bytes = 0;
        if (parseNumber(text, bytes) && bytes > 0)
            config.maxBytes = static_cast<uint64_t>(bytes);
        else
            complain(config, "RANKSCOPE_MAX_BYTES");
    }
    if (const char* text = get("RANKSCOPE_DELAY_S"); text != nullptr && !parseSeconds(text, config.delayNs))
        complain(config, "RANKSCOPE_DELAY_S");
    if (const char* text = get("RANKSCOPE_DURATION_S"); text != nullptr && !parseSeconds(text, config.durationNs))
        complain(config, "RANKSCOPE_DURATION_S");
    if (const char* text = get("RANKSCOPE_RING_S"); text != nullptr && !parseSeconds(text, config.ringNs))
        complain(config, "RANKSCOPE_RING_S");
    if (const char* text = get("RANKSCOPE_SLOW_STEP"); text != nullptr && !parseSeconds(text, config.slowStepE9))
        complain(config, "RANKSCOPE_SLOW_STEP");
    if (const char* text = get("RANKSCOPE_KERNELS")) {
        config.kernelSummaries = std::strcmp(text, "summaries") == 0 && config.ringNs > 0;
        if (!config.kernelSummaries) complain(config, "RANKSCOPE_KERNELS");
    }
    if (const char* text = get("RANKSCOPE_CAPTURE_RANGE")) readRange(config, text);
    if (const char* text = get("RANKSCOPE_CLOCK")) config.cuptiClock = std::strcmp(text, "cupti") == 0;
    if (const char* text = get("RANKSCOPE_NCCL_CHANNELS"))
        config.ncclChannels = std::strcmp(text, "1") == 0       ? Config::Channels::each
                              : std::strcmp(text, "spans") == 0 ? Config::Channels::spans
                                                                : Config::Channels::none;
    if (const char* text = get("RANKSCOPE_NCCL_PROXY")) config.ncclProxy = std::strcmp(text, "0") != 0;
    if (const char* text = get("RANKSCOPE_ENVIRONMENT")) config.environment = std::strcmp(text, "off") != 0;
    if (const char* text = get("RANKSCOPE_RINGS")) config.mapsRings = std::strcmp(text, "memory") != 0;
    if (const char* text = get("RANKSCOPE_VERBOSE")) config.verbose = text[0] != '\0' && std::strcmp(text, "0") != 0;
    return config;
}

}  // namespace rankscope::injector
