// SPDX-License-Identifier: Apache-2.0
// What a diagnosis is: what it says of itself, how it is found, what repairs it. One file each, rsNNN_*.cpp, holds its
// Diagnosis; diagnoses.h names them all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/diagnose/claims.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::diagnose {

/// A number that a diagnosis goes by, and why it has that value. In the code it is the number.
struct Threshold {
    const char* name = "";
    double value = 0;
    const char* unit = "";
    const char* reason = "";

    constexpr operator double() const { return value; }
};

/// Where a cure is made that no setting is.
enum class CureAt : uint8_t {
    program,  // what the job does, and its input
    machine,  // hardware, or which of it the ranks are on
};

/// What must be recorded for its detector to be asked.
enum class Needs : uint8_t {
    steps,   // the job's steps: the cost is a share of them
    events,  // nothing but events: a job that hung in its first step can have it
};

struct Diagnosis {
    const char* id = "";  // "RS301"
    const char* title = "";
    const char* definition = "";
    std::vector<Threshold> thresholds;  // its own, without those that all share
    const char* falsePositives = "";
    const char* fix = "";
    CureAt cureAt = CureAt::program;
    bool hasSettings = false;  // a setting can cure it: there may be advice on it
    Needs needs = Needs::steps;
    bool byCalls = false;   // it judges light recordings, too, which hold no kernels but NCCL's
    bool bySums = false;    // it judges light recordings that hold kernels as summaries of steps
    const char* hint = "";  // what of the timeline shows it, for someone who sees it for the first time

    /// Adds its findings, and claims the time that they explain. Null: catalogued, not detected yet.
    void (*detect)(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) = nullptr;
    /// What it needs and the recording lacks, in a few words; empty where it could judge, or has nothing to judge in
    /// such a job. Null: it reads what every recording has, or what only some jobs have.
    std::string (*missing)(const job::Analysis& analysis) = nullptr;
    /// Of recordings that hold calls alone, by which it cannot judge: what in them only it could explain, as the rest
    /// of a sentence; empty where there is nothing. Null: it does not look.
    std::string (*openByCalls)(const job::Analysis& analysis) = nullptr;
    /// The changes that the finding's fix amounts to; empty: it has none that can be played.
    std::vector<job::Change> (*repair)(const job::Analysis& analysis, const job::Finding& finding) = nullptr;
};

/// The table: all of them, in the order in which their detectors run, deepest cause first.
std::span<const Diagnosis* const> diagnoses();
/// The same by id.
std::span<const Diagnosis* const> catalogue();
/// Case is ignored; nullptr when there is no such diagnosis.
const Diagnosis* findDiagnosis(std::string_view id);
/// What `rankscope explain ID` tells, in lines of at most `columns` characters.
std::string renderDiagnosis(const Diagnosis& diagnosis, size_t columns = text::kTextColumns);

/// "RS3" of "RS301": the family of its id.
enum class Family : char { pipeline = '1', communication = '2', imbalance = '3', host = '4', hang = '5' };
Family familyOf(std::string_view id);

/// Its own, and those that all diagnoses of steps share.
std::vector<Threshold> thresholdsOf(const Diagnosis& diagnosis);

}  // namespace rankscope::diagnose
