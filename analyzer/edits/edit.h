// SPDX-License-Identifier: Apache-2.0
// A change of a job, made to its task graph: what `rankscope whatif --change` and the savings of findings are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/edits/graph_view.h"
#include "analyzer/job/change.h"

namespace rankscope::edits {

/// A change that is not understood or cannot be made to this job: what is wrong, and in hint() what is possible.
class EditError : public std::runtime_error {
  public:
    explicit EditError(const std::string& what, std::string hint = {})
        : std::runtime_error(what), m_hint(std::move(hint)) {}
    const std::string& hint() const { return m_hint; }

  private:
    std::string m_hint;
};

/// How changes take what the trace leaves open.
enum class Outlook : uint8_t {
    expected,
    dear,    // prices of transfers, or what the host does otherwise, at the upper end of what the evidence allows
    cheap,   // at the lower end
    coarse,  // tensors end only where they are known to
    fine,    // tensors are small
};

/// Steps that stand for all: of a job whose changed graph would otherwise be far larger than the recorded one, or of
/// which only these can be changed.
struct PlayedSteps {
    std::vector<int> steps;  // in a row
    double spanNs = 0;       // spanNs() of them before the last change, at equal tokens
};

/// What changes besides the graph.
struct EditEffect {
    Outlook outlook = Outlook::expected;
    bool open = false;         // another outlook may give another step
    bool hostMaySlow = false;  // the dear outlook is one of the host's work and copies
    double chanceNs = 0;       // standard deviation of a changed step by the chances of what is new in it

    std::vector<std::string> assumed;  // sentences: what was taken for granted
    double tokens = 1;  // tokens of a changed step / tokens of a step as recorded: savings are compared at equal tokens
    double replicas =
        1;  // ranks, and with them tokens of a step, as a multiple of those recorded: steps are compared as they are
    std::optional<PlayedSteps> played;  // none: each step stands for itself

    // What the edits after this one take the job for; empty: as recorded.
    std::map<int64_t, facts::Communicator> communicators;  // by id: those that grew, shrank or moved
    std::map<int, int64_t> hosts;                          // by rank: all, where ranks were placed anew
    std::optional<facts::Pipeline> pipeline;       // schedule, micro-batches and virtual stages of all pipelines
    std::optional<int> dataParallel;               // ranks that share the batch
    std::vector<std::vector<double>> stageLayers;  // where layers have moved: by stage, each layer's share of its work;
                                                   // no shares: parts of layers have moved

    bool changesLayout() const { return !communicators.empty() || !hosts.empty() || pipeline || dataParallel; }

    /// Once, however many tasks it was assumed for.
    void assume(std::string sentence);
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(PlayedSteps& value, const Visit& visit) {
    auto& [steps, spanNs] = value;
    visit(steps, spanNs);
}
template <typename Visit>
void forEachField(EditEffect& value, const Visit& visit) {
    auto& [outlook, open, hostMaySlow, chanceNs, assumed, tokens, replicas, played, communicators, hosts, pipeline,
           dataParallel, stageLayers] = value;
    visit(outlook, open, hostMaySlow, chanceNs, assumed, tokens, replicas, played, communicators, hosts, pipeline,
          dataParallel, stageLayers);
}

class TrialGraph;

using GraphChange = std::function<void(TaskGraph&, const Analysis&, EditEffect&)>;
using NewGraph = std::function<TaskGraph(const TrialGraph&, EditEffect&)>;

/// Edits follow each other: each gets the graph as the one before left it, and an analysis whose layout is that of the
/// job as it then is (present()). Edits know the trace only by `analysis`; the graph has no recorded times.
class Edit {
  public:
    /// One that changes a graph in place: durations and leads, structure by GraphDraft(graph) and sealed(). It throws
    /// EditError and leaves the graph in any state.
    explicit Edit(GraphChange change) : m_change(std::move(change)) {}
    /// One that needs no copy of the graph, or reads what others have read of it.
    explicit Edit(NewGraph made) : m_made(std::move(made)) {}

    /// Both throw EditError. `from`: as TrialGraph has it.
    void apply(TaskGraph& graph, const Analysis& analysis, EditEffect& effect, const TrialGraph* from = nullptr) const;
    /// The same of a graph that stays.
    TaskGraph applied(const TrialGraph& of, EditEffect& effect) const;

  private:
    GraphChange m_change;  // empty: m_made is not
    NewGraph m_made;
};

using Edits = std::vector<std::unique_ptr<Edit>>;

/// One by a function that takes what was asked for in front of the graph.
template <typename Function, typename... Asked>
std::unique_ptr<Edit> editBy(Function change, Asked... asked) {
    return std::make_unique<Edit>(GraphChange([=](TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
        change(asked..., graph, analysis, effect);
    }));
}

/// What `steps`, some in a row, take together, ns: of the rank that takes longest from its own beginning of the first
/// one to its own end of the last one. Stages of a pipeline begin a step one after the other: from the first rank's
/// beginning to the last one's end would be longer by that, however many steps there are.
double spanNs(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps);

/// The analysis of a job whose layout edits have changed. It has no replay, but says whom a graph of it does not have.
Analysis present(const Analysis& analysis, const EditEffect& effect);

class EditArguments;

struct EditFamily {
    const char* name;
    const char* syntax;  // "speed:rank=R,factor=F"
    const char* help;    // one sentence
    const char* trials;  // "speed:factor=2": a run that takes none of them cannot be asked for this change; {step} is
                         // one of its steps
    std::unique_ptr<Edit> (*parse)(EditArguments& arguments);  // throws EditError
    double effort = 1;  // processor time that a play with it takes, as a multiple of one that changes times only
};

/// All kinds of changes, in the order in which they are listed.
std::span<const EditFamily> editFamilies();

/// About how long a play with these changes takes, as a multiple of one that changes times only: for sharing plays out.
double effortOf(const std::vector<job::Change>& changes);

/// The edit that makes a change. Throws EditError for what no family knows.
std::unique_ptr<Edit> makeEdit(const job::Change& change);

/// "NAME" or "NAME:key=value,key=value", as it is given on a command line. Throws EditError where it is not of that
/// form, or no family has that name.
job::Change parseChange(std::string_view text);
std::unique_ptr<Edit> parseEdit(std::string_view text);
Edits parseEdits(const std::vector<std::string>& texts);

/// All changes with their syntax and help, a line each.
std::string listEdits();

}  // namespace rankscope::edits
