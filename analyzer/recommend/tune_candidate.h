// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/recommend/tuner_csv.h"

namespace rankscope::recommend {

/// Settings to measure a job with.
struct TuneCandidate {
    std::string name;                                               ///< as it is shown
    std::map<std::string, std::optional<std::string>> environment;  ///< nothing: unset it
    std::vector<TunerRow> tunerRows;
    std::optional<double> predictedSavingNs;  ///< per step
    std::optional<std::pair<double, double>> predictedIntervalNs;
};

/// "NCCL_ALGO=allreduce:tree,NCCL_PROTO=^LL,LL128": settings apart by commas; a comma inside a value is one that no
/// NAME= follows. Throws store::Error.
TuneCandidate parseCandidate(const std::string& text);

/// Either a candidate per line, as above, or JSON: what `rankscope recommend --format json` prints, or {"candidates":
/// […]} with entries of the same form (title, env, tuner_csv, predicted_saving_ns, interval_ns). Entries that set
/// neither a variable nor a tuner row are left out and named in `leftOut`. Throws store::Error with the line or key.
std::vector<TuneCandidate> parseCandidates(const std::string& file, const std::string& text,
                                           std::vector<std::string>& leftOut);

/// For `.` in a shell: export and unset lines.
std::string shellLines(const TuneCandidate& candidate);

}  // namespace rankscope::recommend
