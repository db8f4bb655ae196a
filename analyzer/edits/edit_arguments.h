// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// The arguments of a change. Every getter throws EditError with the family's syntax when the value is no
/// such thing; finish() when a key was given that nobody asked for.
class EditArguments {
  public:
    EditArguments(const job::Change& change, const EditFamily& family);

    std::optional<std::string> text(std::string_view key);
    /// One of `words`; `fallback` when the key is not given.
    std::string word(std::string_view key, std::initializer_list<std::string_view> words, std::string_view fallback);
    /// A number over 0, or "inf".
    std::optional<double> positive(std::string_view key);
    double requiredPositive(std::string_view key);
    /// At least `least`.
    std::optional<int> whole(std::string_view key, int least = 0);
    int requiredWhole(std::string_view key, int least = 0);
    /// "3", "0+4", "0-3+7"; empty when the key is not given.
    std::vector<int> ranks(std::string_view key = "ranks");
    std::optional<int64_t> communicator();
    /// As ranks().
    std::vector<int> communicators() { return ranks("communicator"); }
    void finish() const;

    /// Ends with an EditError that shows the syntax.
    [[noreturn]] void refuse(const std::string& why) const;

  private:
    struct Argument {
        std::string key, value;
        bool used = false;
    };
    std::string m_change;
    const EditFamily& m_family;
    std::vector<Argument> m_arguments;
};

/// Throws EditError for a rank that the run has no recording of.
void checkRecorded(const Analysis& analysis, const std::vector<int>& ranks);

/// "ranks 0-3, 8-11": those that the graph has, for hints.
std::string replayedText(const Analysis& analysis);

/// Those of `ranks` that are replayed (ReplayModel::leftOut); empty: all that are. Ranks that the run has no recording
/// of end the edit, and so do ranks of which none is replayed.
std::vector<int> recordedRanks(const Analysis& analysis, const std::vector<int>& ranks);

/// Throws EditError with the communicators of the run unless `id` is one of them.
void checkCommunicator(const Analysis& analysis, int64_t id);

/// "communicators: 1 (data parallel 0-7); …": those of the run, for hints.
std::string communicatorsText(const Analysis& analysis);

/// Whether a communicator is one of those that were named; `named` are sorted.
bool isNamed(const std::vector<int>& named, int64_t communicator);

/// Of the named communicators, those that the graph has transfers of: the others are told, and refused where they are
/// all.
class NamedCommunicators {
  public:
    /// Sorted; none: all are meant.
    explicit NamedCommunicators(const std::vector<int>& communicators) : m_idle(communicators) {}
    /// The graph has transfers of this one.
    void carries(int64_t communicator);
    /// `found`: some are changed.
    void tell(bool found, const Analysis& analysis, EditEffect& effect) const;

  private:
    std::vector<int> m_idle;  // sorted
};

// What reads the arguments of each family: the registry lists them with their syntax.

std::unique_ptr<Edit> parseAlgorithm(EditArguments& arguments);
std::unique_ptr<Edit> parseBalance(EditArguments& arguments);
std::unique_ptr<Edit> parseBuckets(EditArguments& arguments);
std::unique_ptr<Edit> parseNoContention(EditArguments& arguments);
std::unique_ptr<Edit> parseReduceOnce(EditArguments& arguments);
std::unique_ptr<Edit> parseNoStalls(EditArguments& arguments);
std::unique_ptr<Edit> parseCudaGraphs(EditArguments& arguments);
std::unique_ptr<Edit> parseLaunchEarly(EditArguments& arguments);
std::unique_ptr<Edit> parseSteady(EditArguments& arguments);
std::unique_ptr<Edit> parseLayers(EditArguments& arguments);
std::unique_ptr<Edit> parseMicroBatches(EditArguments& arguments);
std::unique_ptr<Edit> parseSchedule(EditArguments& arguments);
std::unique_ptr<Edit> parsePlace(EditArguments& arguments);
std::unique_ptr<Edit> parseReplicas(EditArguments& arguments);
std::unique_ptr<Edit> parsePrefetch(EditArguments& arguments);
std::unique_ptr<Edit> parseOverlap(EditArguments& arguments);
std::unique_ptr<Edit> parseSpeed(EditArguments& arguments);
std::unique_ptr<Edit> parseNetwork(EditArguments& arguments);
std::unique_ptr<Edit> parseBytes(EditArguments& arguments);
std::unique_ptr<Edit> parseGradients(EditArguments& arguments);

}  // namespace rankscope::edits
