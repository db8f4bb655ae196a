// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"
#include "collector/store/sqlite.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::report {
namespace {

test::DdpJob slowJob() {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    return job;
}

TEST(ReportJson, HoldsTheContractAndAddsUp) {
    const auto json = nlohmann::json::parse(renderJson(test::playDdp(slowJob()).analyze()));
    EXPECT_EQ(json["schema"], "rankscope.report/1");
    EXPECT_EQ(json["run"]["world_size"], 8);
    EXPECT_EQ(json["layout"]["dp"], 8);
    EXPECT_EQ(json["steps"].size(), 6u);
    ASSERT_EQ(json["breakdown"].size(), 8u);
    for (const auto& row : json["breakdown"]) {
        const int64_t sum = row["compute_ns"].get<int64_t>() + row["exposed_comm_ns"].get<int64_t>() +
                            row["memory_ns"].get<int64_t>() + row["idle_ns"].get<int64_t>();
        EXPECT_EQ(sum, row["step_ns"].get<int64_t>());
        EXPECT_EQ(row["exposed_comm_ns"].get<int64_t>(),
                  row["exposed_wait_ns"].get<int64_t>() + row["exposed_transfer_ns"].get<int64_t>());
    }
    const auto& finding = json["findings"].at(0);
    for (const char* key :
         {"id", "title", "severity", "ranks", "affected_ranks", "hosts", "communicator", "steps", "window_ns", "cause",
          "evidence", "fix", "saving_ns_per_step", "saving_interval_ns", "confidence", "verdict", "why_inconclusive"})
        EXPECT_TRUE(finding.contains(key)) << key;
    EXPECT_EQ(finding["hosts"], nlohmann::json::array({"node1"}));
    // The job on paper has no host calls: the replay says so and predicts nothing.
    EXPECT_TRUE(json["replay"]["predicted_step_ns"].is_null());
    EXPECT_TRUE(json["replay"]["error"].is_null());
    EXPECT_NE(json["replay"]["unavailable"].get<std::string>().find("calls of the host are not recorded"),
              std::string::npos);
    EXPECT_TRUE(json["efficiency"]["transfer"].is_null());
}

TEST(ReportText, NamesRankCauseFixAndTheNextCommand) {
    const std::string text = renderText(test::playDdp(slowJob()).analyze());
    for (const char* part : {"RS301", "rank 5 on node1", "fix", "saves", "Next: rankscope explain RS301"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    TextStyle style;
    style.colour = true;
    EXPECT_NE(renderText(test::playDdp(slowJob()).analyze(), style).find('\x1b'), std::string::npos);
}

TEST(ReportMarkdown, NamesAreNoMarkup) {
    EXPECT_EQ(text::markdownText("a_b|<i>"), "a\\_b\\|&lt;i&gt;");
    EXPECT_EQ(text::markdownText("http://x.org www.x.org WWW.x www"), "http&#58;//x.org www&#46;x.org WWW&#46;x www");
    EXPECT_EQ(text::markdownText("@all"), "&#64;all");
}

TEST(ReportMarkdown, HasOneHeadingPerFinding) {
    EXPECT_NE(renderMarkdown(test::playDdp(slowJob()).analyze()).find("### RS301 straggler rank"), std::string::npos);
}

TEST(Reports, OfTenThousandOfEverythingTheRestIsCountedAndTheMarkdownFitsAStepSummary) {
    Report report = test::playDdp(slowJob()).analyze();
    ASSERT_FALSE(report.findings.empty() || report.breakdown.empty() || report.collectives.empty());
    report.findings.resize(10'000, report.findings.front());
    report.notes.resize(10'000, report.findings.front());
    report.breakdown.resize(10'000, report.breakdown.front());
    report.collectives.resize(10'000, report.collectives.front());
    report.losses.resize(10'000, {"torn_tail", "warning", 1, std::string(3000, 'x'), std::nullopt});
    const std::string markdown = renderMarkdown(report), text = renderText(report);
    EXPECT_LT(markdown.size(), 1u << 20);
    for (const char* rest : {"9900 of 10000 findings", "9900 of 10000 notes", "9488 of 10000 ranks",
                             "9500 of 10000 kinds of collectives", "9950 of 10000 losses"})
        EXPECT_NE(markdown.find(rest), std::string::npos) << rest;
    EXPECT_NE(text.find("and 9800 more findings"), std::string::npos);
    EXPECT_LT(text.size(), 1u << 20);
    report.findings.front().evidence.facts.assign(2000, std::string(3000, '_'));
    const std::string cut = renderMarkdown(report);
    EXPECT_LT(cut.size(), 1u << 20);
    EXPECT_TRUE(cut.ends_with("The rest is left out: --format json has all.\n"));
}

TEST(Reports, NamesOfTheJobAreOnlyText) {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    Report report = test::playDdp(job).analyze();
    ASSERT_FALSE(report.findings.empty());
    const std::string hostile = "a\x1b]0;x\x07|<b>`c`\n# d @all";
    report.run.name = hostile;
    report.findings[0].cause = report.findings[0].title = hostile;
    report.findings[0].evidence.facts = report.findings[0].fix = {hostile};
    report.losses.push_back({"torn_tail", "warning", 1, hostile, std::nullopt});
    for (const std::string& text : {renderText(report), renderMarkdown(report)})
        EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos) << text;
    const std::string markdown = renderMarkdown(report);
    for (const char* markup : {"<b>", "\n# d", "@all", " `c`"})
        EXPECT_EQ(markdown.find(markup), std::string::npos) << markup;
}

TEST(Reports, ClaimNoHealthWhenRecordsAreMissing) {
    const test::DdpJob healthy;
    test::TraceFixture trace = test::playDdp(healthy);
    const std::string clean = "No finding: nothing";
    EXPECT_NE(renderText(trace.analyze()).find(clean), std::string::npos);
    EXPECT_NE(renderMarkdown(trace.analyze()).find(clean), std::string::npos);
    trace.loss("bad_block", store::Severity::warning, 1);
    EXPECT_EQ(renderText(trace.analyze()).find(clean), std::string::npos);
    EXPECT_EQ(renderMarkdown(trace.analyze()).find(clean), std::string::npos);
}

TEST(Reports, JudgeNothingOfRecordingsOfDifferentTimes) {
    test::TraceFixture trace = test::playDdp(slowJob());
    EXPECT_FALSE(trace.analyze().findings.empty());
    trace.loss("recordings_apart", store::Severity::warning, 1);
    const Report report = trace.analyze();
    EXPECT_TRUE(report.findings.empty());
    EXPECT_TRUE(report.notes.empty());
    EXPECT_TRUE(report.accounting.unexplained.empty());
    EXPECT_GT(report.notJudged.size(), 20u);
    EXPECT_FALSE(isClean(report));
    EXPECT_NE(renderText(report).find("Nothing was judged: the ranks were recorded at different times."),
              std::string::npos);
}

TEST(Results, AreStoredAndReplacedAsAWhole) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "trace.db";
    test::playDdp(slowJob()).write(file);
    analyze(file);
    analyze(file);
    store::Database db(file.string(), store::OpenMode::readOnly);
    EXPECT_EQ(db.integer("SELECT count(*) FROM finding"), 1);
    EXPECT_GT(db.integer("SELECT count(*) FROM finding_evidence"), 0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM attribution"), 8 * 6);
    EXPECT_EQ(
        db.integer(
            "SELECT count(*) FROM attribution WHERE compute_ns + exposed_comm_ns + memory_ns + idle_ns <> step_ns"),
        0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM attribution a JOIN step s ON s.rank = a.rank AND s.step = a.step WHERE "
                         "a.step_ns <> s.dur_ns"),
              0);
}

TEST(Results, WithoutAReplayThereIsNoCriticalPath) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "trace.db";
    test::playDdp(slowJob()).write(file);  // no calls of the host
    store::Database(file.string(), store::OpenMode::readWrite).execute("INSERT INTO critical_path VALUES (0, 1, 0)");
    analyze(file);
    EXPECT_EQ(store::Database(file.string(), store::OpenMode::readOnly).integer("SELECT count(*) FROM critical_path"),
              0);
}

TEST(Imported, OneRankWithoutStepsSizesOrPeersSaysWhatIsUnknown) {
    test::TraceFixture trace(1, 1);
    trace.kernel(0, 0, 10 * test::kMs, "gemm", 64);
    trace.kernel(0, 20 * test::kMs, 10 * test::kMs, "gemm", 64);
    trace.copy(0, 12 * test::kMs, test::kMs);
    const Report report = trace.analyze();
    const std::string text = renderText(report);
    EXPECT_TRUE(report.findings.empty());
    EXPECT_NE(text.find("no steps found"), std::string::npos) << text;
    EXPECT_NE(text.find("layout unknown"), std::string::npos) << text;
    ASSERT_EQ(report.breakdown.size(), 1u);
    EXPECT_EQ(report.breakdown[0].total.stepNs, 30 * test::kMs);
    EXPECT_EQ(report.breakdown[0].total.memoryNs, test::kMs);
    EXPECT_EQ(report.breakdown[0].total.idleNs, 9 * test::kMs);
}

TEST(Imported, AnEmptyTraceIsAnEmptyReport) {
    const Report report = test::TraceFixture(2, 2).analyze();
    EXPECT_TRUE(report.findings.empty());
    EXPECT_NE(renderText(report).find("nothing to analyse"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(renderJson(report))["findings"].size(), 0u);
}

TEST(Catalogue, EveryDetectedDiagnosisExplainsItsThresholds) {
    std::set<std::string> ids;
    for (const diagnose::Diagnosis* entry : diagnose::diagnoses()) {
        EXPECT_TRUE(ids.insert(entry->id).second) << entry->id;
        EXPECT_NE(std::string(entry->title), "") << entry->id;
        EXPECT_NE(std::string(entry->definition), "") << entry->id;
        if (entry->detect == nullptr) continue;
        for (const diagnose::Threshold& threshold : diagnose::thresholdsOf(*entry)) {
            EXPECT_GT(threshold.value, 0) << entry->id << " " << threshold.name;
            EXPECT_NE(std::string(threshold.reason), "") << entry->id << " " << threshold.name;
        }
        EXPECT_NE(std::string(entry->falsePositives), "") << entry->id;
        EXPECT_TRUE(entry->repair != nullptr || entry->needs == diagnose::Needs::events) << entry->id;
    }
    EXPECT_EQ(diagnose::findDiagnosis("rs301"), diagnose::findDiagnosis("RS301"));
    EXPECT_EQ(diagnose::findDiagnosis("RS999"), nullptr);
}

TEST(Catalogue, WhatIsNotDetectedYetSaysSo) {
    diagnose::Diagnosis planned;
    EXPECT_NE(diagnose::renderDiagnosis(planned).find("not detected yet"), std::string::npos);
    planned.detect = diagnose::findDiagnosis("RS301")->detect;
    EXPECT_EQ(diagnose::renderDiagnosis(planned).find("not detected yet"), std::string::npos);
}

TEST(Catalogue, AJobThatFailedIsNotMeasuredByItsSteps) {
    EXPECT_EQ(diagnose::renderDiagnosis(*diagnose::findDiagnosis("RS501")).find("fewest steps"), std::string::npos);
    EXPECT_NE(diagnose::renderDiagnosis(*diagnose::findDiagnosis("RS301")).find("fewest steps"), std::string::npos);
}

TEST(Units, ReadLikeAPersonWritesThem) {
    EXPECT_EQ(text::bytesText(25.0 * 1024 * 1024), "25 MiB");
    EXPECT_EQ(text::durationText(12'345'678), "12.3 ms");
    EXPECT_EQ(text::ranksText({7, 0, 1, 2}), "ranks 0-2, 7");
    EXPECT_EQ(text::ranksText({3}), "rank 3");
}

}  // namespace
}  // namespace rankscope::report
