// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/frameworks/torch/operator_info.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace rankscope::torch_operators {
namespace {

using namespace std::string_view_literals;

// They allocate, change what a tensor says of itself, or read a value that is there already.
const std::set<std::string_view> kQuiet = {
    "aten::empty"sv,       "aten::empty_strided"sv,       "aten::empty_like"sv,
    "aten::new_empty"sv,   "aten::new_empty_strided"sv,   "aten::_empty_affine_quantized"sv,
    "aten::resize_"sv,     "aten::resize_as_"sv,          "aten::set_"sv,
    "aten::is_set_to"sv,   "aten::record_stream"sv,       "aten::is_pinned"sv,
    "aten::_pin_memory"sv, "aten::_local_scalar_dense"sv, "aten::_fused_sdp_choice"sv};

// One step for each element: so much cheaper than a product of matrices that more of them are computed.
const std::set<std::string_view> kCheap = {
    "aten::fill_"sv,       "aten::copy_"sv,      "aten::sum"sv,         "aten::mean"sv,         "aten::all"sv,
    "aten::any"sv,         "aten::eq"sv,         "aten::ne"sv,          "aten::lt"sv,           "aten::le"sv,
    "aten::gt"sv,          "aten::ge"sv,         "aten::logical_and"sv, "aten::logical_or"sv,   "aten::logical_not"sv,
    "aten::bitwise_and"sv, "aten::bitwise_or"sv, "aten::bitwise_not"sv, "aten::arange"sv,       "aten::cumsum"sv,
    "aten::isnan"sv,       "aten::isinf"sv,      "aten::abs"sv,         "aten::masked_fill_"sv, "aten::nonzero"sv};

const std::set<std::string_view> kAsking = {"aten::equal"sv,
                                            "aten::nonzero"sv,
                                            "aten::_unique"sv,
                                            "aten::_unique2"sv,
                                            "aten::unique_dim"sv,
                                            "aten::unique_consecutive"sv,
                                            "aten::unique_dim_consecutive"sv};

const std::set<std::string_view> kOverwrites = {
    "aten::fill_"sv,       "aten::zero_"sv,          "aten::copy_"sv,         "aten::normal_"sv,    "aten::uniform_"sv,
    "aten::random_"sv,     "aten::bernoulli_"sv,     "aten::exponential_"sv,  "aten::geometric_"sv, "aten::cauchy_"sv,
    "aten::log_normal_"sv, "aten::_foreach_copy_"sv, "aten::_foreach_zero_"sv};

const std::set<std::string_view> kRows = {"aten::embedding"sv,  "aten::index"sv,       "aten::index_select"sv,
                                          "aten::gather"sv,     "aten::take"sv,        "aten::index_put_"sv,
                                          "aten::index_add_"sv, "aten::scatter_add_"sv};

Arithmetic arithmeticOf(std::string_view name) {
    static const std::map<std::string_view, Arithmetic> known = {
        {"aten::mm"sv, Arithmetic::mm},
        {"aten::bmm"sv, Arithmetic::mm},
        {"aten::_int_mm"sv, Arithmetic::mm},
        {"aten::_scaled_mm"sv, Arithmetic::mm},
        {"aten::addmm"sv, Arithmetic::addmm},
        {"aten::addmm_"sv, Arithmetic::addmm},
        {"aten::_addmm_activation"sv, Arithmetic::addmm},
        {"aten::baddbmm"sv, Arithmetic::addmm},
        {"aten::baddbmm_"sv, Arithmetic::addmm},
        {"aten::_flash_attention_forward"sv, Arithmetic::attention},
        {"aten::_efficient_attention_forward"sv, Arithmetic::attention},
        {"aten::_scaled_dot_product_flash_attention"sv, Arithmetic::attention},
        {"aten::_scaled_dot_product_efficient_attention"sv, Arithmetic::attention},
        {"aten::_scaled_dot_product_cudnn_attention"sv, Arithmetic::attention},
        {"aten::_flash_attention_backward"sv, Arithmetic::attentionBack},
        {"aten::_efficient_attention_backward"sv, Arithmetic::attentionBack},
        {"aten::_scaled_dot_product_flash_attention_backward"sv, Arithmetic::attentionBack},
        {"aten::_scaled_dot_product_efficient_attention_backward"sv, Arithmetic::attentionBack},
        {"aten::_scaled_dot_product_cudnn_attention_backward"sv, Arithmetic::attentionBack},
        {"aten::cudnn_convolution"sv, Arithmetic::convolution},
        {"aten::slow_conv2d_forward"sv, Arithmetic::convolution},
        {"aten::_slow_conv2d_forward"sv, Arithmetic::convolution},
        {"aten::conv_depthwise3d"sv, Arithmetic::convolution},
        {"aten::_conv_depthwise2d"sv, Arithmetic::convolution},
        {"aten::convolution_backward"sv, Arithmetic::convolutionBack}};
    const auto found = known.find(name);
    return found == known.end() ? Arithmetic::none : found->second;
}

/// Some operators have different names on different devices.
std::optional<c10::OperatorHandle> otherTwinOf(std::string_view name) {
    static const std::map<std::string_view, const char*> known = {
        {"aten::cudnn_convolution"sv, "aten::convolution"},
        {"aten::_scaled_dot_product_flash_attention"sv, "aten::_scaled_dot_product_flash_attention_for_cpu"},
        {"aten::_scaled_dot_product_flash_attention_backward"sv,
         "aten::_scaled_dot_product_flash_attention_for_cpu_backward"}};
    const auto found = known.find(name);
    if (found == known.end()) return std::nullopt;
    return c10::Dispatcher::singleton().findSchema({found->second, ""});
}

void describe(OperatorInfo& info, const c10::OperatorHandle& handle) {
    const c10::FunctionSchema& schema = handle.schema();
    const bool isAten = info.name.rfind("aten::", 0) == 0;
    // copy_ has one kernel for every device.
    info.isLeaf = handle.hasKernelForDispatchKey(c10::DispatchKey::CUDA) || info.name == "aten::copy_";
    info.isQuiet = kQuiet.count(info.name) != 0;
    for (const c10::Argument& result : schema.returns())
        if (result.alias_info() && !result.alias_info()->isWrite()) info.isView = true;
    info.reading = kOverwrites.count(info.name) ? Reading::overwrites
                   : kRows.count(info.name)     ? Reading::rows
                                                : Reading::all;
    for (const c10::Argument& argument : schema.arguments())
        if (argument.alias_info() && argument.alias_info()->isWrite() && !argument.is_out()) info.mutates = true;
    for (const std::string_view prefix : {"aten::_foreach_"sv, "aten::_fused_"sv, "aten::_amp_foreach_"sv})
        if (info.name.rfind(prefix, 0) == 0 && !schema.arguments().empty())
            info.isForEach = schema.arguments()[0].type()->kind() == c10::TypeKind::ListType;
    info.isRandom = handle.hasTag(at::Tag::nondeterministic_seeded);
    info.asksDevice = kAsking.count(info.name) != 0;
    info.isCheap = kCheap.count(info.name) != 0;
    info.arithmetic = arithmeticOf(info.name);
    // Only the framework's own operators stay for the life of the process, so that a call can be kept for later.
    if (isAten) {
        info.handle = handle;
        info.hasTwin = handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
        if (!info.hasTwin) info.twin = otherTwinOf(info.name);
        info.hasTwin |= info.twin.has_value();
    }
}

}  // namespace

const OperatorInfo* infoOf(const at::RecordFunction& function) {
    // Names are found by where they stand, and then compared, because ranges have theirs in memory that is used again.
    using Key = std::pair<const char*, const char*>;
    static thread_local std::map<Key, std::unique_ptr<OperatorInfo>> known;
    const Key key{function.name(), function.overload_name()};
    if (!key.first) return nullptr;
    std::unique_ptr<OperatorInfo>& info = known[key];
    if (!info || info->name != key.first) {
        info = std::make_unique<OperatorInfo>();
        info->name = key.first;
        if (const auto name = function.operator_name())
            if (const auto handle = c10::Dispatcher::singleton().findSchema(*name)) describe(*info, *handle);
    }
    return info->isLeaf ? info.get() : nullptr;
}

}  // namespace rankscope::torch_operators
