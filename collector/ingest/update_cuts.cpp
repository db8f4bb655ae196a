// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/update_cuts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>

#include "collector/ingest/loop_body.h"

namespace rankscope::collector {
namespace {

/// Kernels of one update have less other work between them, as a share of the most that lies between two updates:
/// clipping and scaling of gradients take some per cent of a forward and a backward pass.
constexpr double kInsideUpdate = 0.1;
/// Updates of one step that stand apart: two optimizers that take turns, or clipping of a model so small that its
/// passes take no longer.
constexpr size_t kMostUpdatesPerStep = 4;
/// A first step that has a smaller share of the second's kernels was recorded in part. A whole one may lack some: the
/// first update finds no momentum to apply.
constexpr double kWhole = 0.66;

std::string lowerCase(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

/// [first, last] kernel of one update, and the other work between its end and the next one.
struct Update {
    size_t first = 0;
    size_t last = 0;
    double untilNextNs = 0;
};

/// Updates in order; `isUpdate` by kernel.
std::vector<Update> groupUpdates(const KernelSequence& kernels, const std::vector<bool>& isUpdate) {
    std::vector<Update> single;
    double otherNs = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
        if (!isUpdate[i]) {
            if (!kernels[i].communicates) otherNs += static_cast<double>(kernels[i].durNs);
            continue;
        }
        if (!single.empty()) single.back().untilNextNs = otherNs;
        single.push_back({i, i, 0});
        otherNs = 0;
    }
    double mostNs = 0;
    for (const Update& update : single) mostNs = std::max(mostNs, update.untilNextNs);
    std::vector<Update> grouped;
    bool goesOn = false;
    for (const Update& update : single) {
        if (goesOn) {
            grouped.back().last = update.last;
            grouped.back().untilNextNs = update.untilNextNs;
        } else {
            grouped.push_back(update);
        }
        goesOn = update.untilNextNs <= kInsideUpdate * mostNs;
    }
    return grouped;
}

double computeIn(const KernelSequence& kernels, size_t first, size_t last) {
    return static_cast<double>(std::count_if(kernels.begin() + static_cast<std::ptrdiff_t>(first),
                                             kernels.begin() + static_cast<std::ptrdiff_t>(last),
                                             [](const KernelLaunch& kernel) { return !kernel.communicates; }));
}

/// Where a recording begins, as far as it says: a capture range and a dump of a ring are taken to begin with the job.
enum class Begin : uint8_t { withJob, insideJob };

/// Cuts behind every `perStep`-th update, so that the most work lies behind the cuts.
Cuts cutsBehind(const KernelSequence& kernels, const std::vector<Update>& updates, size_t perStep, Begin begin) {
    if (updates.size() < 2 * perStep) return {};
    size_t last = 0;
    double mostNs = -1;
    for (size_t phase = 0; phase < perStep; ++phase) {
        double behindNs = 0;
        for (size_t u = phase; u + perStep < updates.size(); u += perStep) behindNs += updates[u].untilNextNs;
        if (behindNs > mostNs) {
            mostNs = behindNs;
            last = phase;
        }
    }
    Cuts ends;
    for (size_t u = last; u < updates.size(); u += perStep) ends.push_back(updates[u].last + 1);
    // A recording that began inside a step has its first piece torn, which does not tell with which kernel one begins.
    if (begin == Begin::insideJob) return ends;
    Cuts cuts = cutsByLoop(kernels, ends, updates.front().first);
    if (cuts.size() > 2 && computeIn(kernels, cuts[0], cuts[1]) < kWhole * computeIn(kernels, cuts[1], cuts[2]))
        cuts.erase(cuts.begin());
    return cuts;
}

Cuts cutsOf(const KernelSequence& kernels, const std::vector<bool>& isUpdate, Begin begin) {
    const std::vector<Update> updates = groupUpdates(kernels, isUpdate);
    for (size_t perStep = 1; perStep <= kMostUpdatesPerStep; ++perStep) {
        Cuts cuts = cutsBehind(kernels, updates, perStep, begin);
        if (alikeShare(kernels, cuts) >= kAlike) return cuts;
    }
    return {};
}

/// Marks kernels launched inside the ranges that PyTorch's optimizers open; false where there are none.
bool markByRanges(const RankRecording& recording, const KernelSequence& kernels, std::vector<bool>& isUpdate) {
    constexpr std::string_view kOptimizerRange = "Optimizer.step#";
    std::vector<signed char> known(recording.strings.size(), -1);
    bool any = false;
    for (const store::NvtxRange& range : recording.nvtx) {
        if (range.kind == store::NvtxKind::mark || !range.durNs || range.domainId) continue;
        signed char& opens = known[static_cast<size_t>(range.nameId)];
        if (opens < 0) opens = recording.strings[range.nameId].starts_with(kOptimizerRange);
        if (!opens) continue;
        const auto from = std::lower_bound(kernels.begin(), kernels.end(), range.startNs,
                                           [](const KernelLaunch& k, int64_t ns) { return k.launchNs < ns; });
        for (auto k = from; k != kernels.end() && k->launchNs < range.startNs + *range.durNs; ++k) {
            isUpdate[static_cast<size_t>(k - kernels.begin())] = !k->communicates;
            any = true;
        }
    }
    return any;
}

}  // namespace

bool isUpdateKernelName(std::string_view name) {
    // PyTorch's foreach and fused optimizers and Apex launch multi_tensor_apply_kernel, torch.compile triton_for_…;
    // others are named after the method.
    constexpr std::array kWords = {"multi_tensor_apply", "triton_for_", "adam", "adagrad", "rmsprop", "sgd",
                                   "optimizer"};
    const std::string lower = lowerCase(name);
    // FSDP copies the parameters of a layer with multi_tensor_apply_kernel, too.
    if (lower.find("copy") != std::string::npos) return false;
    return std::any_of(kWords.begin(), kWords.end(),
                       [&lower](const char* word) { return lower.find(word) != std::string::npos; });
}

Cuts cutsByUpdates(const RankRecording& recording, const KernelSequence& kernels) {
    const Begin begin = recording.part ? Begin::insideJob : Begin::withJob;
    std::vector<bool> isUpdate(kernels.size());
    if (markByRanges(recording, kernels, isUpdate)) return cutsOf(kernels, isUpdate, begin);

    std::vector<signed char> byName(recording.strings.size(), -1);
    std::set<int32_t> names;
    for (size_t i = 0; i < kernels.size(); ++i) {
        if (kernels[i].communicates) continue;
        signed char& known = byName[static_cast<size_t>(kernels[i].nameId)];
        if (known < 0) known = isUpdateKernelName(recording.strings[kernels[i].nameId]);
        if (!known) continue;
        isUpdate[i] = true;
        names.insert(kernels[i].nameId);
    }
    if (Cuts cuts = cutsOf(kernels, isUpdate, begin); !cuts.empty()) return cuts;
    // One of the names may be of something else: that which by itself cuts most often is the update's.
    Cuts best;
    for (const int32_t name : names) {
        for (size_t i = 0; i < kernels.size(); ++i) isUpdate[i] = kernels[i].nameId == name;
        Cuts cuts = cutsOf(kernels, isUpdate, begin);
        if (cuts.size() > best.size()) best = std::move(cuts);
    }
    return best;
}

}  // namespace rankscope::collector
