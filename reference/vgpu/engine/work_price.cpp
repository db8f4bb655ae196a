// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/work_price.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace rankscope::vgpu {
namespace {

// Of a kernel whose work nobody tells: what starts and ends it, and what a block takes with its share of the device.
constexpr double kUnknownKernelNs = 3000, kUnknownBlockNs = 20;

struct NamedElement {
    std::string_view name;
    RankscopeElement element;
};
constexpr NamedElement kElements[] = {{"bf16", RANKSCOPE_ELEMENT_BF16}, {"fp16", RANKSCOPE_ELEMENT_BF16},
                                      {"fp8", RANKSCOPE_ELEMENT_FP8},   {"int8", RANKSCOPE_ELEMENT_FP8},
                                      {"tf32", RANKSCOPE_ELEMENT_TF32}, {"fp32", RANKSCOPE_ELEMENT_FP32},
                                      {"fp64", RANKSCOPE_ELEMENT_FP64}};

[[noreturn]] void refuse(size_t line, const std::string& cause) {
    throw std::runtime_error("line " + std::to_string(line) + ": " + cause);
}

std::vector<std::string> fieldsOf(const std::string& line) {
    std::vector<std::string> fields;
    std::stringstream text(line);
    for (std::string field; std::getline(text, field, ',');) {
        const size_t first = field.find_first_not_of(" \t\r"), last = field.find_last_not_of(" \t\r");
        fields.push_back(first == std::string::npos ? "" : field.substr(first, last - first + 1));
    }
    return fields;
}

double numberAt(const std::vector<std::string>& fields, size_t at, const char* column, size_t line) {
    const std::string& text = fields[at];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
        refuse(line, std::string(column) + " is '" + text + "', not a number of 0 or more");
    return value;
}

RankscopeElement elementAt(const std::string& text, size_t line) {
    for (const NamedElement& known : kElements)
        if (known.name == text) return known.element;
    refuse(line, "element is '" + text + "': use bf16, fp16, fp8, int8, tf32, fp32 or fp64");
}

/// How far apart two amounts are, as the logarithm of their ratio.
double distance(double a, double b) {
    return std::abs(std::log((a + 1) / (b + 1)));
}

}  // namespace

// Dense rates of data sheets, as shares of bf16's. H100 SXM: 989 TFLOP/s bf16, 1979 fp8, 494 tf32, 67 fp32, 67 fp64
// (tensor cores); A100: 312, 624 int8, 156, 19.5, 19.5.
double rateOf(RankscopeElement element) {
    switch (element) {
        case RANKSCOPE_ELEMENT_FP8:
            return 2;
        case RANKSCOPE_ELEMENT_TF32:
            return 0.5;
        case RANKSCOPE_ELEMENT_FP32:
        case RANKSCOPE_ELEMENT_FP64:
            return 1.0 / 15;
        default:
            return 1;
    }
}

double workNs(const Cluster& cluster, const RankscopeWork& work) {
    return std::max(work.flop / (cluster.tflops * rateOf(work.element) * 1e3), work.bytes / cluster.hbmGbps);
}

double unknownKernelNs(double blocks) {
    return kUnknownKernelNs + kUnknownBlockNs * blocks;
}

PriceTable PriceTable::parse(std::string_view text) {
    PriceTable table;
    std::stringstream lines{std::string(text)};
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        number++;
        if (line.empty() || line[0] == '#' || line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const std::vector<std::string> fields = fieldsOf(line);
        Point point{};
        if (fields[0] == "operator") {
            if (fields.size() != 6) refuse(number, "an operator has 6 fields: operator,NAME,ELEMENT,FLOP,BYTES,US");
            point.work = {numberAt(fields, 3, "FLOP", number), numberAt(fields, 4, "BYTES", number),
                          elementAt(fields[2], number)};
            point.us = numberAt(fields, 5, "US", number);
        } else if (fields[0] == "kernel") {
            if (fields.size() != 4) refuse(number, "a kernel has 4 fields: kernel,PART OF ITS NAME,BLOCKS,US");
            point.isKernel = true;
            point.blocks = numberAt(fields, 2, "BLOCKS", number);
            point.us = numberAt(fields, 3, "US", number);
        } else {
            refuse(number, "begins with '" + fields[0] + "': use operator or kernel");
        }
        point.name = fields[1];
        if (point.name.empty()) refuse(number, "the name is empty");
        if (point.us == 0) refuse(number, "US is 0: nothing takes no time");
        table.m_points.push_back(std::move(point));
    }
    if (table.empty()) throw std::runtime_error("holds no prices");
    return table;
}

PriceTable PriceTable::read(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::stringstream text;
    text << file.rdbuf();
    try {
        return parse(text.str());
    } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

double PriceTable::operatorNs(const Cluster& cluster, std::string_view name, const RankscopeWork& work) const {
    const Point* nearest = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Point& point : m_points) {
        if (point.isKernel || point.name != name || point.work.element != work.element) continue;
        const double apart = distance(point.work.flop, work.flop) + distance(point.work.bytes, work.bytes);
        if (apart < least) {
            least = apart;
            nearest = &point;
        }
    }
    if (!nearest) return -1;
    const double measured = std::max(kShortestKernelNs, workNs(cluster, nearest->work));
    return nearest->us * 1000 * std::max(kShortestKernelNs, workNs(cluster, work)) / measured;
}

double PriceTable::kernelNs(std::string_view mangledName, double blocks) const {
    const Point* nearest = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Point& point : m_points) {
        if (!point.isKernel || mangledName.find(point.name) == std::string_view::npos) continue;
        if (const double apart = distance(point.blocks, blocks); apart < least) {
            least = apart;
            nearest = &point;
        }
    }
    if (!nearest) return -1;
    return nearest->us * 1000 * unknownKernelNs(blocks) / unknownKernelNs(nearest->blocks);
}

}  // namespace rankscope::vgpu
