// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/nearest_word.h"

namespace rankscope::edits {
namespace {

/// The job is played anew pass by pass, and its graph becomes as much larger as there are more of them: 1.3 s against
/// 0.16 s for a change of times (256 ranks, twice the micro-batches); 0.31 s against 0.04 s with 64 ranks.
constexpr double kPlayedAnew = 8;

constexpr std::array kFamilies{
    EditFamily{"balance", "balance[:ranks=R+R | :what=work]",
               "the same kernels take as long on these ranks (all slow ones) as on their peers; what=work: work is "
               "shared evenly",
               "balance", parseBalance},
    EditFamily{"speed",
               "speed:factor=F[,ranks=R+R][,kernel=NAME*] | speed:factor=F,communicator=ID+ID | "
               "speed:factor=F,links=intra|inter|rank[,ranks=R+R][,limit=peak]",
               "kernels of ranks or of a name, or transfers of communicators or a class of links, F times as fast",
               "speed:factor=2", parseSpeed},
    EditFamily{"network", "network[:ideal=latency|bandwidth|both]",
               "transfers without start-up time, without time for their bytes, or without any", "network",
               parseNetwork},
    EditFamily{
        "algorithm", "algorithm:algo=auto|ring|tree|...[,proto=ll|ll128|simple][,op=allreduce][,communicator=ID+ID]",
        "collectives with another algorithm or protocol of NCCL, or with what it takes where no variable tells it",
        "algorithm:algo=auto algorithm:algo=ring algorithm:algo=tree", parseAlgorithm},
    EditFamily{"bytes", "bytes:factor=F[,communicator=ID+ID]",
               "gradients, or all of a communicator, with F times the bytes", "bytes:factor=0.5", parseBytes},
    EditFamily{"gradients", "gradients[:dtype=bf16|fp16]", "gradients that travel as fp32 travel in 16 bit",
               "gradients", parseGradients},
    EditFamily{"reduce-once", "reduce-once:micro-steps=K", "gradients are reduced in the last of K micro-steps only",
               "reduce-once:micro-steps=2 reduce-once:micro-steps=3 reduce-once:micro-steps=4 "
               "reduce-once:micro-steps=5 reduce-once:micro-steps=6 reduce-once:micro-steps=8",
               parseReduceOnce},
    EditFamily{"launch-early", "launch-early", "the host does not hold back its calls of communication", "launch-early",
               parseLaunchEarly},
    EditFamily{"no-contention", "no-contention", "kernels beside communication are as fast as alone", "no-contention",
               parseNoContention},
    EditFamily{"no-stalls", "no-stalls[:cause=sync|input|allocator|pageable|launch|pauses|all][,ranks=R+R]",
               "the host no longer keeps the device waiting by that cause", "no-stalls", parseNoStalls},
    EditFamily{"graphs", "graphs[:ranks=R+R]", "CUDA graphs: launches inside a step cost the host nothing", "graphs",
               parseCudaGraphs},
    EditFamily{"steady", "steady:steps=S+S[,ranks=R+R]",
               "nothing in these steps takes longer than it does in the others", "steady:steps={step}", parseSteady},
    EditFamily{"buckets", "buckets:mb=M[,overlap=yes]",
               "gradients travel in buckets of M MiB (DDP's bucket_cap_mb), each when its last gradient is ready",
               "buckets:mb=25", parseBuckets},
    EditFamily{"overlap", "overlap",
               "communication leaves when its data are there, and compute waits for it only where it needs the result",
               "overlap", parseOverlap},
    EditFamily{"prefetch", "prefetch[:depth=D]", "sharded layers are gathered D layers ahead",
               "prefetch prefetch:depth=2 prefetch:depth=4", parsePrefetch},
    EditFamily{
        "micro-batches", "micro-batches:count=M[,batch=kept|grown][,virtual=V]",
        "a pipeline runs M micro-batches in a step: of the present size (grown), or of the batch as it is (kept)",
        "micro-batches:count=8 micro-batches:count=16", parseMicroBatches, kPlayedAnew},
    EditFamily{"schedule", "schedule:name=gpipe|1f1b|interleaved[,virtual=V]",
               "a pipeline runs in another order, or with V virtual stages", "schedule:name=1f1b schedule:name=gpipe",
               parseSchedule, kPlayedAnew},
    EditFamily{"layers", "layers[:from=S,to=S,count=N | :parts=yes]",
               "N layers move from one pipeline stage to another; without arguments as the stages balance best, with "
               "parts evenly",
               "layers", parseLayers},
    EditFamily{"place", "place[:communicator=ID]",
               "the tensor-parallel groups, or those like the named one, are put inside nodes: ranks in another order",
               "place", parsePlace},
    EditFamily{"dp-ranks", "dp-ranks:count=P", "P data-parallel ranks, each with the present work",
               "dp-ranks:count=8 dp-ranks:count=16", parseReplicas},
};

/// Throws EditError with the names of all families.
const EditFamily& familyNamed(std::string_view name) {
    const auto known = std::ranges::find(kFamilies, name, &EditFamily::name);
    if (known != kFamilies.end()) return *known;
    std::vector<std::string> names;
    for (const EditFamily& family : kFamilies) names.emplace_back(family.name);
    throw EditError(fmt::format("'{}' is no change", name),
                    fmt::format("{}changes: {}; `rankscope whatif --list` shows their syntax",
                                text::didYouMean(name, names), text::joined(names)));
}

}  // namespace

void EditEffect::assume(std::string sentence) {
    if (std::ranges::find(assumed, sentence) == assumed.end()) assumed.push_back(std::move(sentence));
}

std::span<const EditFamily> editFamilies() {
    return kFamilies;
}

double effortOf(const std::vector<job::Change>& changes) {
    double effort = 0;
    for (const job::Change& change : changes) effort += familyNamed(change.family).effort;
    return std::max(1.0, effort);
}

std::unique_ptr<Edit> makeEdit(const job::Change& change) {
    const EditFamily& family = familyNamed(change.family);
    EditArguments arguments(change, family);
    std::unique_ptr<Edit> edit = family.parse(arguments);
    arguments.finish();
    return edit;
}

job::Change parseChange(std::string_view text) {
    const size_t colon = text.find(':');
    job::Change change{std::string(text.substr(0, colon))};
    const EditFamily& family = familyNamed(change.family);
    if (colon == std::string_view::npos || colon + 1 == text.size()) return change;
    for (const auto part : text.substr(colon + 1) | std::views::split(',')) {
        const std::string_view argument(part.begin(), part.end());
        const size_t equals = argument.find('=');
        if (equals == 0 || equals == std::string_view::npos || equals + 1 == argument.size())
            throw EditError(fmt::format("change '{}': '{}' is not key=value", text, argument),
                            fmt::format("syntax: {}", family.syntax));
        change.arguments.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
    }
    return change;
}

std::unique_ptr<Edit> parseEdit(std::string_view text) {
    return makeEdit(parseChange(text));
}

Edits parseEdits(const std::vector<std::string>& texts) {
    Edits edits;
    for (const std::string& text : texts) edits.push_back(parseEdit(text));
    return edits;
}

std::string listEdits() {
    std::string text;
    for (const EditFamily& family : kFamilies) text += fmt::format("{}\n    {}\n", family.syntax, family.help);
    return text;
}

}  // namespace rankscope::edits
