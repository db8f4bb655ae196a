// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_tuner/tuner_rows.h"

#include <cstring>
#include <iterator>

namespace rankscope::injector {
namespace {

using namespace tuner_abi;

constexpr const char* kFunctionNames[kFunctions] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
constexpr const char* kAlgorithmNames[kAlgorithms] = {"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                                      "nvls_tree", "pat"};
constexpr const char* kProtocolNames[kProtocols] = {"ll", "ll128", "simple"};

struct Field {
    const char* text;
    size_t length;
};

constexpr size_t kMinFields = 8, kMaxFields = 10;

bool isBlank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

Field trimmed(const char* text, size_t length) noexcept {
    while (length > 0 && isBlank(*text)) ++text, --length;
    while (length > 0 && isBlank(text[length - 1])) --length;
    return {text, length};
}

/// Number of fields; kMaxFields + 1 stands for 'more'.
size_t split(const char* line, size_t length, Field (&fields)[kMaxFields]) noexcept {
    size_t count = 0;
    for (size_t begin = 0;; ++count) {
        if (count == kMaxFields) return kMaxFields + 1;
        size_t end = begin;
        while (end < length && line[end] != ',') ++end;
        fields[count] = trimmed(line + begin, end - begin);
        if (end == length) return count + 1;
        begin = end + 1;
    }
}

template <size_t N>
bool readName(const Field& field, const char* const (&names)[N], int& value) noexcept {
    for (size_t i = 0; i < N; ++i) {
        if (std::strlen(names[i]) != field.length || std::memcmp(names[i], field.text, field.length) != 0) continue;
        value = static_cast<int>(i);
        return true;
    }
    return false;
}

/// A whole number of at least 0, or -1 for any.
bool readNumber(const Field& field, int64_t& value) noexcept {
    if (field.length == 2 && std::memcmp(field.text, "-1", 2) == 0) {
        value = -1;
        return true;
    }
    if (field.length == 0 || field.length > 18) return false;
    int64_t number = 0;
    for (size_t i = 0; i < field.length; ++i) {
        if (field.text[i] < '0' || field.text[i] > '9') return false;
        number = number * 10 + (field.text[i] - '0');
    }
    value = number;
    return true;
}

/// What NCCL never offers, whatever the machine (generate.py and tuning.cc of NCCL 2.28).
const char* impossible(const TunerRow& row) noexcept {
    if (row.protocol != simple && row.algorithm != ring && row.algorithm != tree)
        return "ll and ll128 exist for ring and tree only";
    if (row.algorithm == pat) {
        if (row.function != allGather && row.function != reduceScatter)
            return "pat exists for allgather and reducescatter only";
    } else if (row.algorithm == tree || row.algorithm == collnetChain || row.algorithm == nvlsTree) {
        if (row.function != allReduce) return "tree, collnet_chain and nvls_tree exist for allreduce only";
    } else if (row.algorithm != ring && (row.function == broadcast || row.function == reduce)) {
        return "broadcast and reduce have ring only";
    }
    if (row.algorithm == nvlsTree && row.nodes == 1) return "nvls_tree needs more than one node";
    // Across nodes these run in all the channels they are told, without a look at how many the communicator has
    // (scheduleCollTasksToPlan).
    if (row.channels != -1 && row.algorithm != ring && row.algorithm != tree && row.algorithm != pat)
        return "channels can be set for ring, tree and pat only";
    return nullptr;
}

bool meet(int64_t a, int64_t b) noexcept {
    return a == -1 || b == -1 || a == b;
}

}  // namespace

const char* parseTunerRow(const char* line, size_t length, TunerRow& row) noexcept {
    Field fields[kMaxFields];
    const size_t count = split(line, length, fields);
    if (count < kMinFields) return "too few columns";
    if (count > kMaxFields) return "too many columns";
    TunerRow read;
    if (!readName(fields[0], kFunctionNames, read.function)) return "unknown collective";
    if (!readNumber(fields[1], read.minBytes)) return "min_bytes is no number";
    if (!readNumber(fields[2], read.maxBytes)) return "max_bytes is no number";
    if (read.minBytes == -1) read.minBytes = 0;
    if (read.maxBytes != -1 && read.minBytes > read.maxBytes) return "min_bytes is above max_bytes";
    if (!readName(fields[3], kAlgorithmNames, read.algorithm)) return "unknown algorithm";
    if (!readName(fields[4], kProtocolNames, read.protocol)) return "unknown protocol";
    int64_t channels = -1;
    if (!readNumber(fields[5], channels) || channels == 0 || channels > kMaxTunerChannels)
        return "channels must be 1 to 64, or -1";
    read.channels = static_cast<int>(channels);
    if (!readNumber(fields[6], read.nodes) || read.nodes == 0) return "nNodes must be 1 or more, or -1";
    if (!readNumber(fields[7], read.ranks) || read.ranks == 0 || read.ranks == 1)
        return "nRanks must be 2 or more, or -1";
    if (read.nodes != -1 && read.ranks != -1 && read.nodes > read.ranks) return "nNodes is above nRanks";
    if (count > 8 && (!readNumber(fields[8], read.pipeOps) || read.pipeOps == 0))
        return "numPipeOps must be 1 or more, or -1";
    if (count > 9 && (!readNumber(fields[9], read.registered) || read.registered > 1))
        return "regBuff must be 0, 1 or -1";
    if (const char* problem = impossible(read)) return problem;
    row = read;
    return nullptr;
}

bool overlap(const TunerRow& a, const TunerRow& b) noexcept {
    const bool sizesMeet =
        (b.maxBytes == -1 || a.minBytes <= b.maxBytes) && (a.maxBytes == -1 || b.minBytes <= a.maxBytes);
    return a.function == b.function && sizesMeet && meet(a.nodes, b.nodes) && meet(a.ranks, b.ranks) &&
           meet(a.pipeOps, b.pipeOps) && meet(a.registered, b.registered);
}

bool isSilentLine(const char* line, size_t length) noexcept {
    const Field text = trimmed(line, length);
    if (text.length == 0 || *text.text == '#') return true;
    size_t first = 0;
    while (first < length && line[first] != ',') ++first;
    constexpr const char* kHeadings[] = {"collective", "collective_type"};  // the latter in NVIDIA's files
    int ignored = 0;
    return first < length && readName(trimmed(line, first), kHeadings, ignored);
}

const char* functionName(int function) noexcept {
    return function >= 0 && function < kFunctions ? kFunctionNames[function] : "?";
}
const char* algorithmName(int algorithm) noexcept {
    return algorithm >= 0 && algorithm < kAlgorithms ? kAlgorithmNames[algorithm] : "?";
}
const char* protocolName(int protocol) noexcept {
    return protocol >= 0 && protocol < kProtocols ? kProtocolNames[protocol] : "?";
}

}  // namespace rankscope::injector
