// SPDX-License-Identifier: Apache-2.0
// Where the steps' time goes that is not compute, and who accounts for it: a finding, what theory says of such a job,
// or nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::diagnose {

/// Of the time in which a rank computes nothing. `waiting`: for other ranks, with the transfers that compute would have
/// hidden but for their lateness. `communication`: waiting or transfer, which of them is unknown; or both, where only
/// together they are worth a word.
enum class Exposed : uint8_t { waiting, transfer, communication, memory, idle };
std::string_view toText(Exposed category);

/// Of one category, who accounts for it and with what share of the step.
struct AccountPart {
    std::string by;        // "RS301", or words: "the first gather and the last reduction of a step"
    bool finding = false;  // `by` is a diagnosis of the report
    double share = 0;      // of the step, mean over ranks
};

struct Account {
    Exposed category = Exposed::waiting;
    double share = 0;                // of the step, mean over the recorded ranks
    std::vector<AccountPart> parts;  // largest first
    double unexplained = 0;          // what is left of `share`
};

struct WaitedFor {
    int rank = 0;
    double share = 0;  // of the waiting in question
};

/// Time that nobody accounts for, and too much of it to be silent.
struct Unexplained {
    Exposed category = Exposed::waiting;
    double share = 0;                  // of the step, mean over the recorded ranks
    double nsPerStep = 0;              // the same of the typical step
    std::vector<int> ranks;            // on which it is
    std::vector<WaitedFor> waitedFor;  // most first
    std::vector<std::string> facts;    // what is known of it
    std::string settle;                // what would tell its cause
};

struct Accounting {
    std::vector<Account> accounts;         // of all categories
    std::vector<Unexplained> unexplained;  // largest first
    std::vector<Account>
        said;  // large, but accounted for by theory in part: the report must say so, since no finding does
};

/// A diagnosis whose input the recording lacks.
struct NotJudged {
    std::string id;
    std::string needs;  // in a few words: "no link peak"
};

}  // namespace rankscope::diagnose
