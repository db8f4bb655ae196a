// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_damage.h"

#include <gtest/gtest.h>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

std::vector<std::string> damageAfter(const std::string& sql) {
    const test::SmallRun run("PRAGMA foreign_keys = OFF; " + sql);
    auto reader = run.reader();
    return readRunInfo(reader).damage;
}

using Damage = std::vector<std::string>;

TEST(RunDamage, ASoundRunHasNone) {
    EXPECT_EQ(damageAfter("SELECT 1"), Damage{});
}

TEST(RunDamage, EventsOfNoRankAreFound) {
    EXPECT_EQ(damageAfter("DELETE FROM extent WHERE table_name = 'kernel'"),
              Damage{"table extent gives some events to no rank (kernel)"});
    EXPECT_EQ(damageAfter("DELETE FROM extent WHERE table_name = 'kernel' AND rank = 0"),
              Damage{"table extent gives some events to no rank (kernel)"});
    EXPECT_EQ(damageAfter("UPDATE extent SET first_id = first_id + 1 WHERE table_name = 'kernel' AND rank = 1"),
              Damage{"table extent gives some events to no rank (kernel)"});
    EXPECT_EQ(damageAfter("UPDATE extent SET last_id = last_id - 1 WHERE table_name = 'kernel' AND rank = 1"),
              Damage{"table extent gives some events to no rank (kernel)"});
}

TEST(RunDamage, EventsOfTwoRanksAreFound) {
    EXPECT_EQ(damageAfter("UPDATE extent SET last_id = last_id + 1 WHERE table_name = 'kernel' AND rank = 0"),
              Damage{"table extent gives some events to two ranks (kernel)"});
}

TEST(RunDamage, EventsOfARankThatIsNotListedAreFound) {
    const Damage damage = damageAfter("DELETE FROM rank WHERE rank = 1");
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_EQ(damage[0],
              "there are events of 1 rank that table rank does not list (kernel, memcpy, nvtx, api_call, nccl_call)");
}

TEST(RunDamage, ARunWithoutEventsIsSound) {
    EXPECT_EQ(damageAfter("DELETE FROM kernel; DELETE FROM memcpy; DELETE FROM api_call; DELETE FROM nvtx; DELETE FROM "
                          "nccl_call; DELETE FROM extent; DELETE FROM rank"),
              Damage{});
}

TEST(RunDamage, ValuesOfAWrongTypeAndMissingNamesAreFound) {
    EXPECT_EQ(damageAfter("UPDATE step SET start_ns = 'early' WHERE rank = 0"),
              Damage{"1 row of table step holds values of a wrong type"});
    EXPECT_EQ(damageAfter("DELETE FROM string WHERE id = 2"), Damage{"table string holds 4 of 5 names"});
}

TEST(RunDamage, StepsOfNegativeLengthAreFound) {
    EXPECT_EQ(damageAfter("UPDATE step SET dur_ns = -7 WHERE rank = 1"),
              Damage{"1 row of table step has a negative duration"});
}

TEST(RunDamage, ARankOnAHostThatIsNotListedIsStillShown) {
    const test::SmallRun run("PRAGMA foreign_keys = OFF; DELETE FROM host");
    auto reader = run.reader();
    const RunInfo info = readRunInfo(reader);
    ASSERT_EQ(info.outline.hosts.size(), 1u);
    for (const OutlineRank& rank : info.outline.ranks) EXPECT_EQ(rank.host, info.outline.hosts[0].host);
}

}  // namespace
}  // namespace rankscope::gui
