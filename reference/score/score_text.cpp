// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "reference/score/score.h"

namespace rankscope::score {
namespace {

std::string percent(const std::optional<double>& share, int digits = 1) {
    return share ? fmt::format("{:.{}f} %", 100 * *share, digits) : "-";
}
std::string milliseconds(const std::optional<double>& ns) {
    return ns ? fmt::format("{:.2f}", *ns / 1e6) : "-";
}

using Row = std::vector<std::string>;

/// A table as text (columns padded) or as Markdown. The first column is left-aligned, the others right-aligned but for
/// `leftLast`.
std::string table(const std::vector<Row>& rows, bool markdown, bool leftLast) {
    std::vector<size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    const auto isLeft = [&](size_t i) { return i == 0 || (leftLast && i + 1 == widths.size()); };
    std::string text;
    for (size_t r = 0; r < rows.size(); ++r) {
        std::string line = markdown ? "|" : " ";
        for (size_t i = 0; i < rows[r].size(); ++i) {
            const std::string cell =
                isLeft(i) ? fmt::format("{:<{}}", rows[r][i], widths[i]) : fmt::format("{:>{}}", rows[r][i], widths[i]);
            line += " " + cell + (markdown ? " |" : " ");
        }
        while (!line.empty() && line.back() == ' ') line.pop_back();
        text += line + "\n";
        if (r > 0 || !markdown) continue;
        text += "|";
        for (size_t i = 0; i < widths.size(); ++i) text += isLeft(i) ? " --- |" : " ---: |";
        text += "\n";
    }
    return text;
}

std::string limitsText(const DiagnosisTally& diagnosis) {
    std::string text;
    for (const StrengthLevel& level : diagnosis.detectionLimits)
        text += fmt::format("{}{} {} ({} of the step)", text.empty() ? "" : "; ", level.strength.fault,
                            level.strength.text, percent(level.medianCost));
    return text.empty() ? "-" : text;
}

Row countsRow(const std::string& name, const Counts& counts, const std::string& limits) {
    return {name,
            std::to_string(counts.truePositives),
            std::to_string(counts.falseAlarms),
            std::to_string(counts.missed),
            std::to_string(counts.wrongRank),
            fmt::format("{:.3f}", counts.precision()),
            fmt::format("{:.3f}", counts.recall()),
            fmt::format("{:.3f}", counts.f1()),
            limits};
}

std::string confusionTable(const Tally& tally, bool markdown) {
    std::vector<Row> rows = {{"diagnosis", "true", "false", "missed", "wrong rank", "precision", "recall", "F1",
                              "found in 95 % of seeds from"}};
    for (const auto& [id, diagnosis] : tally.byDiagnosis)
        rows.push_back(countsRow(id, diagnosis.counts, limitsText(diagnosis)));
    rows.push_back(countsRow("all", tally.total, ""));
    return table(rows, markdown, true);
}

std::string savingTable(const std::vector<ScenarioScore>& scenarios, bool markdown) {
    std::vector<Row> rows = {{"scenario", "step ms", "predicted ms", "measured ms", "error", "replay error", "wall s"}};
    for (const ScenarioScore& score : scenarios) {
        if (!score.savingError() && !score.replayError) continue;
        rows.push_back({score.name, milliseconds(score.faultyStepNs), milliseconds(score.predictedSavingNs),
                        milliseconds(score.measuredSavingNs), percent(score.savingError()),
                        percent(score.replayError, 2), fmt::format("{:.1f}", score.wallS)});
    }
    return rows.size() > 1 ? table(rows, markdown, false) : std::string();
}

std::string adviceTable(const std::vector<ScenarioScore>& scenarios, bool markdown) {
    std::vector<Row> rows = {{"scenario", "step ms", "followed", "advised as", "promised ms", "measured ms", "kept"}};
    for (const ScenarioScore& score : scenarios) {
        if (!score.advice || !score.advice->gainNs) continue;
        const FollowedAdvice& advice = *score.advice;
        rows.push_back({score.name, milliseconds(score.faultyStepNs), fmt::format("{}", fmt::join(advice.areas, " + ")),
                        advice.isRecommended ? "recommended" : "a trial",
                        fmt::format("{:.2f} ({:.2f} to {:.2f})", advice.promise.expected / 1e6,
                                    advice.promise.low / 1e6, advice.promise.high / 1e6),
                        milliseconds(advice.gainNs), advice.isKept(score.faultyStepNs) ? "yes" : "no"});
    }
    return rows.size() > 1 ? table(rows, markdown, false) : std::string();
}

/// Scenarios with advice that they have no way to follow, a line each.
std::vector<std::string> adviceNotFollowed(const std::vector<ScenarioScore>& scenarios) {
    std::vector<std::string> lines;
    for (const ScenarioScore& score : scenarios)
        if (score.advice && !score.advice->notFollowed.empty())
            lines.push_back(fmt::format("{}: {}", score.name, fmt::join(score.advice->notFollowed, ", ")));
    return lines;
}

std::string oneLine(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

/// What did not go as expected, a line each.
std::vector<std::string> complaints(const std::vector<ScenarioScore>& scenarios) {
    std::vector<std::string> lines;
    for (const ScenarioScore& score : scenarios) {
        if (!score.error.empty()) {
            lines.push_back(fmt::format("{}: error: {}", score.name, oneLine(score.error)));
        } else if (!score.missed.empty() || !score.falseAlarms.empty()) {
            lines.push_back(fmt::format("{}: expected {}, found {}{}", score.name, toText(score.expected),
                                        toText(score.found), score.wrongRank.empty() ? "" : " (wrong rank)"));
        }
    }
    return lines;
}

/// What was not planted but is true of a drawn world, a line each.
std::vector<std::string> ofTheWorlds(const std::vector<ScenarioScore>& scenarios) {
    std::vector<std::string> lines;
    for (const ScenarioScore& score : scenarios)
        if (!score.ofTheWorld.empty()) lines.push_back(fmt::format("{}: {}", score.name, toText(score.ofTheWorld)));
    return lines;
}

std::string render(const Scoreboard& board, bool markdown) {
    const Tally& tally = board.tally;
    const auto heading = [&](const char* text) {
        return markdown ? fmt::format("\n## {}\n\n", text) : fmt::format("\n{}\n", text);
    };
    std::string text = fmt::format("{}{}, links {}, {}: {} scenarios, {} of them healthy, {} failed, {:.0f} s\n",
                                   markdown ? "# Score of " : "", board.suite, board.links,
                                   board.worlds == 0 ? "the ideal world" : fmt::format("worlds {}", board.worlds),
                                   board.scenarios.size(), tally.healthy, tally.errors, board.wallS);
    text += heading("Diagnoses") + confusionTable(tally, markdown);
    if (const auto lines = complaints(board.scenarios); !lines.empty()) {
        text += heading("Not as expected");
        for (const std::string& line : lines) text += (markdown ? "- " : "  ") + line + "\n";
    }
    if (const auto lines = ofTheWorlds(board.scenarios); !lines.empty()) {
        text += heading("Not planted, but what the world costs: these count neither way");
        for (const std::string& line : lines) text += (markdown ? "- " : "  ") + line + "\n";
    }
    if (const std::string savings = savingTable(board.scenarios, markdown); !savings.empty())
        text += heading("Savings per step at equal tokens: predicted and measured") + savings;
    if (const std::string followed = adviceTable(board.scenarios, markdown); !followed.empty())
        text += heading("Advice followed: what a step gains at equal tokens, promised and measured") + followed;
    if (const auto lines = adviceNotFollowed(board.scenarios); !lines.empty()) {
        text += heading("Recommended, but the scenario has no way to set it");
        for (const std::string& line : lines) text += (markdown ? "- " : "  ") + line + "\n";
    }
    const char* indent = markdown ? "" : "  ";
    text += fmt::format("\n{}saving error: median {}, worst {} of the faulty step\n", indent,
                        percent(tally.savingErrorMedian), percent(tally.savingErrorWorst));
    if (tally.replayErrorMedian)
        text += fmt::format("{}replay error: median {}, worst {} of the measured step\n", indent,
                            percent(tally.replayErrorMedian, 2), percent(tally.replayErrorWorst, 2));
    if (tally.promises > 0)
        text += fmt::format("{}advice: {} of {} gains in their interval\n", indent, tally.promisesKept, tally.promises);
    return text;
}

std::string modesTable(const std::vector<Scoreboard>& boards, bool markdown) {
    Row head = {"diagnosis"};
    std::set<std::string> ids;
    for (const Scoreboard& board : boards) {
        head.insert(head.end(), {board.links + ": true / false / missed", "precision", "recall"});
        for (const auto& [id, diagnosis] : board.tally.byDiagnosis) ids.insert(id);
    }
    const auto add = [](const Counts& counts, Row& row) {
        row.insert(row.end(), {fmt::format("{} / {} / {}", counts.truePositives, counts.falseAlarms, counts.missed),
                               fmt::format("{:.3f}", counts.precision()), fmt::format("{:.3f}", counts.recall())});
    };
    std::vector<Row> rows = {head};
    for (const std::string& id : ids) {
        Row row = {id};
        for (const Scoreboard& board : boards) {
            const auto found = board.tally.byDiagnosis.find(id);
            add(found == board.tally.byDiagnosis.end() ? Counts{} : found->second.counts, row);
        }
        rows.push_back(row);
    }
    rows.push_back({"all"});
    for (const Scoreboard& board : boards) add(board.tally.total, rows.back());
    return table(rows, markdown, false);
}

}  // namespace

std::string renderModes(const std::vector<Scoreboard>& boards, const std::string& format) {
    if (format == "json") {
        nlohmann::ordered_json modes = nlohmann::ordered_json::array();
        for (const Scoreboard& board : boards) modes.push_back(nlohmann::ordered_json::parse(renderJson(board)));
        return nlohmann::ordered_json{{"schema", "rankscope.score_modes/1"}, {"modes", modes}}.dump(2) + "\n";
    }
    const bool markdown = format == "md";
    std::string text = modesTable(boards, markdown);
    for (const Scoreboard& board : boards)
        for (const std::string& line : complaints(board.scenarios))
            text += fmt::format("{}links {}: {}\n", markdown ? "\n- " : "  ", board.links, line);
    return text;
}

std::string renderText(const Scoreboard& board) {
    return render(board, false);
}
std::string renderMarkdown(const Scoreboard& board) {
    return render(board, true);
}

}  // namespace rankscope::score
