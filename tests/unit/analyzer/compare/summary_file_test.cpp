// SPDX-License-Identifier: Apache-2.0
// Summaries written and read again, files that are no summaries, and folders of them.
#include "analyzer/compare/summary_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "analyzer/compare/changes.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

TEST(SummaryFile, ComesBackAsItWas) {
    RunSummary run = makeRun(1);
    run.label = "commit <b>&\"1\"";
    run.findings = {finding("RS301", 9 * kMs), finding("RS203", 9 * kMs)};
    run.findings[1].savingNs = 0;
    run.losses.push_back({"dropped", "warning", 3, "three records", std::nullopt});
    const std::string text = renderSummary(run);
    const RunSummary back = parseSummary(text, "x.json");
    EXPECT_EQ(renderSummary(back), text);
    EXPECT_EQ(summaryId(back), summaryId(run));
    EXPECT_EQ(back.findings.at(0).savingNs, std::nullopt);
    EXPECT_EQ(back.findings.at(1).savingNs, 0);
    EXPECT_TRUE(back.fromBaseline);
    EXPECT_LT(text.size(), 16384u);
}

TEST(SummaryFile, AnOlderVersionsOneNumberOfAFindingIsNotKnownToBeEither) {
    RunSummary run = makeRun(1);
    run.findings = {finding("RS301", 9 * kMs)};
    nlohmann::json old = nlohmann::json::parse(renderSummary(run));
    old["findings"][0].erase("saving_ns");
    EXPECT_EQ(parseSummary(old.dump(), "x.json").findings.at(0).costNs, std::nullopt);
}

TEST(SummaryFile, ARunIsTheSameWhateverAVersionFindsInIt) {
    RunSummary run = makeRun(1), other = run;
    other.findings = {finding("RS301", 9 * kMs)};
    EXPECT_EQ(summaryId(run), summaryId(other));
    other.stepsNs[0] += 1 * kMs;
    EXPECT_NE(summaryId(run), summaryId(other));
}

TEST(SummaryFile, LongRunsKeepMeansOverNeighboursAndTheTailOfAllSteps) {
    std::vector<double> steps(1000, 90 * kMs);
    for (size_t i = 0; i < steps.size(); i += 10) steps[i] = 300 * kMs;  // a tenth, each beside nine others
    RunSummary run = makeRun(1);
    run.stepsNs.clear();
    setSteps(steps, run);
    EXPECT_EQ(run.steps, 1000);
    EXPECT_EQ(run.stepsPerSample, 2);
    EXPECT_EQ(run.stepsNs.size(), 500u);
    const RunSummary back = parseSummary(renderSummary(run), "x.json");
    ASSERT_TRUE(back.slowStepNs);
    EXPECT_EQ(*back.slowStepNs, 300 * kMs);
    const auto tailOf = [](const RunSummary& one) {
        for (const MetricValue& metric : metricsOf(one))
            if (metric.name == "95th percentile of steps") return metric.value;
        return 0.0;
    };
    EXPECT_EQ(tailOf(back), 300 * kMs);  // not 195 ms, which no step takes
    run.slowStepNs.reset();              // a file without it
    EXPECT_EQ(tailOf(parseSummary(renderSummary(run), "x.json")), 0);
    RunSummary brief = makeRun(1);
    brief.stepsNs.clear();
    setSteps(std::vector<double>(steps.begin(), steps.begin() + 200), brief);
    EXPECT_FALSE(brief.slowStepNs);
    EXPECT_EQ(tailOf(brief), 300 * kMs);
    EXPECT_FALSE(slowStepOf(std::vector<double>(19, 1.0)));
}

std::string changed(const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(renderSummary(makeRun(1)));
    change(json);
    return json.dump();
}

std::string errorOf(const std::string& text) {
    try {
        parseSummary(text, "x.json");
    } catch (const SummaryError& error) {
        return error.what();
    }
    return "";
}

TEST(SummaryFile, SaysWhatIsWrongAndWhere) {
    EXPECT_NE(errorOf("{\"steps_ns\": [NaN]}").find("x.json"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["schema"] = "rankscope.run-summary/9"; })).find("another version"),
              std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["schema"] = "rankscope.report/1"; })).find("rankscope.report/1"),
              std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = -1; })).find("steps_ns[3]"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = "1"; })).find("steps_ns"), std::string::npos);
    EXPECT_NE(
        errorOf(changed([](auto& json) { json["roles"][2]["compute_ns"] = nullptr; })).find("roles[2].compute_ns"),
        std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json.erase("traffic"); })).find("traffic is missing"),
              std::string::npos);
    EXPECT_NE(
        errorOf(changed([](auto& json) { json["roles"][2]["compute_ns"] = -1; })).find("roles[2].compute_ns is -1"),
        std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = 1e300; })).find("steps_ns[3]"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps"] = 1e300; })).find("steps is 1e+300"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["start_unix_ns"] = 1e19; })).find("start_unix_ns"),
              std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["start_unix_ns"] = ~0ull; })).find("start_unix_ns"),
              std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["roles"][0]["kernel_ns"] = {-5}; })).find("roles[0].kernel_ns[0]"),
              std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) {
                  json["loss"] = {{{"kind", "x"}, {"severity", "info"}, {"count", 1e30}, {"what_it_means", ""}}};
              })).find("loss[0].count"),
              std::string::npos);
    EXPECT_EQ(
        parseSummary(changed([](auto& json) { json["start_unix_ns"] = 1700000000123456789; }), "x.json").startUnixNs,
        1700000000123456789)
        << "no double in between";
    try {
        parseSummary(changed([](auto& json) { json["roles"][1].erase("kernel_ns"); }), "x.json");
        ADD_FAILURE() << "a missing key was read";
    } catch (const SummaryError& error) {
        EXPECT_NE(std::string(error.what()).find("roles[1].kernel_ns is missing"), std::string::npos);
        EXPECT_NE(error.hint().find("another version"), std::string::npos);
    }
    EXPECT_NE(errorOf(changed([](auto& json) {
                  json["roles"][2]["idle_by_cause_ns"]["input"] = -1;
              })).find("roles[2].idle_by_cause_ns.input is -1"),
              std::string::npos);
    EXPECT_EQ(parseSummary(changed([](auto& json) { json["traffic"][0]["size_class"] = 1'000'000; }), "x.json")
                  .traffic[0]
                  .sizeClass,
              31)
        << "its bytes are a number";
    EXPECT_NE(errorOf(changed([](auto& json) {
                  json["findings"] = {{{"id", ""},
                                       {"title", ""},
                                       {"verdict", "found"},
                                       {"ranks", {2}},
                                       {"roles", {"dp 2"}},
                                       {"cause", ""},
                                       {"fix", nlohmann::json::array()},
                                       {"cost_ns", 1},
                                       {"saving_ns", "x"}}};
              })).find("findings[0].saving_ns is no number"),
              std::string::npos);
    EXPECT_NE(errorOf("[]").find("schema"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = 0.5; })).find("steps_ns[3]"), std::string::npos)
        << "shorter than clocks tell: its ratio to others is no number";
    EXPECT_EQ(errorOf(changed([](auto&) {})), "");
}

TEST(SummaryFile, SaysWhatIsNoJsonInALine) {
    EXPECT_EQ(errorOf(""), "x.json: the file is empty");
    EXPECT_EQ(errorOf("{\"schema\":"),
              "x.json: no JSON: line 1, column 11: unexpected end of input; expected '[', '{', or a literal");
    EXPECT_EQ(errorOf("{\n \"steps\": NaN}"),
              "x.json: no JSON: line 2, column 11: invalid literal; last read: '\"steps\": N'");
    EXPECT_NE(errorOf(changed([](auto&) {}) + "{}").find("unexpected '{'"), std::string::npos);
    EXPECT_LT(errorOf("{\"" + std::string(100'000, 'x') + "\n\": 1}").size(), 400u);
    EXPECT_LT(errorOf("{\"schema\": \"" + std::string(100'000, 'x') + "\"}").size(), 400u);
}

// What a merge leaves behind: of two values neither may be taken for the run.
TEST(SummaryFile, WhatAMergeLeftTwiceIsRefused) {
    const std::string text = changed([](auto&) {});
    EXPECT_EQ(errorOf(text.substr(0, text.size() - 1) + ",\"steps_ns\":[1,2,3]}"),
              "x.json: the key steps_ns is there twice in one object");
    EXPECT_NE(errorOf("{\n<<<<<<< HEAD\n \"name\": \"a\"\n=======\n \"name\": \"b\"\n>>>>>>> other\n}")
                  .find("a merge left both sides"),
              std::string::npos);
    EXPECT_EQ(errorOf(changed([](auto& json) { json["name"] = json["label"] = "<<<<<<< twice"; })), "")
        << "as a value it is only a name";
}

TEST(Baseline, KeepsTheLabelOfARunThatIsSavedAgainWithoutOne) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-label-" + std::to_string(getpid()));
    RunSummary run = makeRun(1);
    run.label = "v1.2";
    const std::filesystem::path file = saveToBaseline({run}, folder).at(0);
    run.label.clear();
    EXPECT_EQ(saveToBaseline({run}, folder).at(0), file);
    EXPECT_EQ(readSummary(file).label, "v1.2");
    run.label = "v1.3";
    saveToBaseline({run}, folder);
    EXPECT_EQ(readSummary(file).label, "v1.3");
    std::ofstream(file) << "damaged";
    run.label.clear();
    saveToBaseline({run}, folder);
    EXPECT_EQ(readSummary(file).label, "");
    std::filesystem::remove_all(folder);
}

// Builds that share a folder prune it while others read.
TEST(Baseline, FilesThatAreGoneSinceTheyWereListedAreLeftOut) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-gone-" + std::to_string(getpid()));
    for (int i = 0; i < 3; ++i) saveToBaseline({makeRun(i)}, folder);
    const std::vector<std::filesystem::path> files = baselineFiles(folder);
    std::filesystem::remove(files[1]);
    EXPECT_EQ(readSavedRuns(files).size(), 2u);
    std::ofstream(files[0]) << "damaged";
    EXPECT_THROW(readSavedRuns(files), SummaryError);
    std::ofstream(files[0], std::ios::trunc).close();
    try {
        readSummary(files[0]);
        ADD_FAILURE() << "an empty file was read";
    } catch (const SummaryError& error) {
        EXPECT_TRUE(std::string(error.what()).ends_with("the file is empty")) << error.what();
    }
    EXPECT_THROW(readSummary(folder), SummaryError);
    std::filesystem::remove_all(folder);
}

TEST(Baseline, LeavesHiddenFilesAlone) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-hidden-" + std::to_string(getpid()));
    saveToBaseline({makeRun(1)}, folder);
    for (const char* name : {"._copy.json", ".json", "README.md"}) std::ofstream(folder / name) << "no summary";
    EXPECT_EQ(readBaseline(folder).size(), 1u);
    std::filesystem::remove_all(folder);
}

TEST(Baseline, KeepsRunsThatRepeatEachOtherButBeganAtOtherTimes) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-repeats-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    RunSummary run = makeRun(1);
    for (const int64_t start : {100, 200, 300, 200}) {
        run.startUnixNs = start;
        saveToBaseline({run}, folder);
    }
    EXPECT_EQ(readBaseline(folder).size(), 3u);
    std::filesystem::remove_all(folder);
}

TEST(Baseline, IsAFolderOfFilesNamedByTheirContents) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-baseline-test-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(readBaseline(folder).empty());
    for (int i = 0; i < 4; ++i) {
        RunSummary run = makeSide(i).front();
        run.startUnixNs = 1000 - i;
        const std::filesystem::path file = saveToBaseline({run}, folder).at(0);
        EXPECT_EQ(saveToBaseline({run}, folder).at(0), file);
    }
    EXPECT_EQ(baselineFiles(folder).size(), 4u);
    EXPECT_EQ(pruneBaseline(folder, 3).size(), 1u);
    // The one that was saved first is gone, whatever its clock said.
    for (const RunSummary& run : readBaseline(folder)) EXPECT_LT(run.startUnixNs, 1000);
    std::filesystem::remove_all(folder);
}

TEST(Baseline, CountsItsEntriesAsTheyAreSaved) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-order-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    const auto save = [&](int first, const std::string& label, int64_t startUnixNs) {
        std::vector<RunSummary> runs{makeRun(first), makeRun(first + 1)};
        for (RunSummary& run : runs) {
            run.stepsNs.front() += first;
            run.label = label;
            run.startUnixNs = startUnixNs++;
        }
        return saveToBaseline(runs, folder);
    };
    const auto a = save(0, "a", 5000), b = save(10, "b", 1000), more = save(20, "b", 1500), c = save(30, "c", 2000);
    const auto orderOf = [](const std::filesystem::path& file) { return readSummary(file).savedOrder; };
    EXPECT_EQ(orderOf(a[0]), 1);
    EXPECT_EQ(orderOf(b[1]), 2);
    EXPECT_EQ(orderOf(more[0]), 2) << "of the newest entry's label";
    EXPECT_EQ(orderOf(c[0]), 3);
    // What is saved again stays where it is, with what was accepted.
    acceptInBaseline(folder, "a");
    save(0, "a", 5000);
    EXPECT_EQ(orderOf(a[0]), 1);
    EXPECT_TRUE(readSummary(a[0]).beginsLevel);
    EXPECT_EQ(readBaseline(folder).front().label, "a");
    std::filesystem::remove_all(folder);
}

TEST(Baseline, PrunesEachKindOfJobByItself) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rankscope-kinds-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    for (int i = 0; i < 4; ++i) {
        RunSummary run = makeRun(i);
        run.startUnixNs = i;
        if (i == 0) run.environment["world_size"] = "8";
        saveToBaseline({run}, folder);
    }
    EXPECT_EQ(pruneBaseline(folder, 2).size(), 1u);
    const std::vector<RunSummary> left = readBaseline(folder);
    ASSERT_EQ(left.size(), 3u);
    EXPECT_EQ(left.front().environment.at("world_size"), "8") << "the oldest, and the only one of its kind";
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rankscope::compare
