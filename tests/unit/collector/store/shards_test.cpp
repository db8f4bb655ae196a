// SPDX-License-Identifier: Apache-2.0
#include "collector/store/shards.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/store/writer.h"
#include "tests/unit/collector/capture_file.h"

namespace rankscope::store {
namespace {

Kernel kernel(int64_t id, int32_t rank, int64_t startNs) {
    Kernel row;
    row.id = id;
    row.rank = rank;
    row.startNs = startNs;
    row.durNs = 5;
    row.nameId = 1;
    return row;
}

/// Ranks 0 and 2 in one shard, rank 1 in the other: ids 1 to 3, 4 and 5, 6 to 8.
class ShardsTest : public testing::Test {
  protected:
    ShardsTest() {
        std::filesystem::create_directory(m_folder.path() / "trace.d");
        write("mark");
    }

    std::filesystem::path database() const { return m_folder.path() / "trace.db"; }
    std::filesystem::path shard(const char* name) const { return m_folder.path() / "trace.d" / name; }

    void write(const std::string& mark) {
        TraceWriter trace(database());
        trace.intern("gemm");
        for (int32_t rank = 0; rank < 3; ++rank) trace.write(Rank{.rank = rank});
        writeShard("a.db", mark,
                   {kernel(1, 0, 10), kernel(2, 0, 20), kernel(3, 0, 30), kernel(6, 2, 12), kernel(7, 2, 22),
                    kernel(8, 2, 32)},
                   trace);
        writeShard("b.db", mark, {kernel(4, 1, 11), kernel(5, 1, 21)}, trace);
        trace.write(Shard{0, "a.db"});
        trace.write(Shard{1, "b.db"});
        trace.write(Shard{2, "a.db"});
        trace.setMeta(kShardsKey, mark);
        trace.finish();
    }

    void writeShard(const char* name, const std::string& mark, const std::vector<Kernel>& rows, TraceWriter& trace) {
        TraceWriter part(shard(name));
        part.intern("gemm");
        part.write(std::span<const Kernel>(rows));
        trace.write(std::span<const Extent>(part.extents()));
        std::set<int32_t> ranks;
        for (const Kernel& row : rows) ranks.insert(row.rank);
        for (const int32_t rank : ranks) part.write(Rank{.rank = rank});
        part.setMeta(kShardOfKey, mark);
        part.finish();
    }

    static std::vector<int64_t> ids(TraceReader& reader, const std::string& rest, const std::string& column = "id") {
        Statement rows(reader.database(), "SELECT " + column + " FROM kernel " + rest);
        std::vector<int64_t> found;
        while (rows.step()) found.push_back(rows.integer(0));
        return found;
    }

    test::TemporaryFolder m_folder;
};

using Ids = std::vector<int64_t>;

TEST_F(ShardsTest, SqlSeesAllOfThemAsOneTable) {
    TraceReader reader(database());
    EXPECT_EQ(ids(reader, ""), (Ids{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(ids(reader, "ORDER BY id DESC"), (Ids{8, 7, 6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(ids(reader, "WHERE id = 5"), (Ids{5}));
    EXPECT_EQ(ids(reader, "WHERE rowid = 5"), (Ids{5}));
    EXPECT_EQ(ids(reader, "WHERE id BETWEEN 3 AND 6 ORDER BY id"), (Ids{3, 4, 5, 6}));
    EXPECT_EQ(ids(reader, "WHERE id > 3 AND id < 6 ORDER BY id"), (Ids{4, 5}));
    EXPECT_EQ(ids(reader, "WHERE id IN (7, 2, 99) ORDER BY id"), (Ids{2, 7}));
    EXPECT_EQ(ids(reader, "WHERE rank = 1"), (Ids{4, 5}));
    EXPECT_EQ(ids(reader, "WHERE rank = 3"), Ids{});
    EXPECT_EQ(ids(reader, "WHERE id = 5 AND rank = 0"), Ids{});
    EXPECT_EQ(ids(reader, "WHERE id > 2.5 AND id < 'x' ORDER BY id LIMIT 2"), (Ids{3, 4}));
    EXPECT_EQ(ids(reader, "WHERE start_ns >= 30 ORDER BY start_ns"), (Ids{3, 8}));
    EXPECT_EQ(ids(reader, "WHERE id = NULL"), Ids{});
    EXPECT_EQ(ids(reader, "k JOIN string s ON s.id = k.name_id WHERE s.text = 'gemm' AND k.rank = 2", "k.id"),
              (Ids{6, 7, 8}));
    EXPECT_EQ(ids(reader, "a WHERE EXISTS (SELECT 1 FROM kernel b WHERE b.id = a.id + 1 AND b.rank <> a.rank)", "a.id"),
              (Ids{3, 5}));
    EXPECT_EQ(reader.database().integer("SELECT count(*) FROM main.kernel"), 0);
}

TEST_F(ShardsTest, RowsOfARankComeFromItsShard) {
    TraceReader reader(database());
    const auto idsOf = [](Cursor<Kernel> cursor) {
        Ids found;
        for (Kernel row; cursor.next(row);) found.push_back(row.id);
        return found;
    };
    EXPECT_EQ(idsOf(reader.cursor<Kernel>(2)), (Ids{6, 7, 8}));
    EXPECT_EQ(idsOf(reader.cursor<Kernel>(2, 20, 30)), (Ids{7}));
    EXPECT_EQ(idsOf(reader.cursor<Kernel>(1)), (Ids{4, 5}));
    EXPECT_EQ(reader.databaseOf(1).file(), shard("b.db").string());
    Kernel row;
    ASSERT_TRUE(reader.find(4, row));
    EXPECT_EQ(row.startNs, 11);
    EXPECT_FALSE(reader.find(9, row));
}

TEST_F(ShardsTest, OneThatIsElsewhereIsRefusedWhenItIsNeeded) {
    std::filesystem::remove(shard("b.db"));
    EXPECT_THROW(TraceReader{database()}, Error);
    TraceReader reader(database(), {}, MisplacedRows::refused, MissingShards::elsewhere);
    EXPECT_EQ(reader.missingShards(), std::vector<std::string>{"b.db"});
    Cursor<Kernel> here = reader.cursor<Kernel>(0);
    Kernel row;
    EXPECT_TRUE(here.next(row));
    EXPECT_EQ(ids(reader, "WHERE rank = 0"), (Ids{1, 2, 3}));
    EXPECT_THROW(reader.cursor<Kernel>(1), Error);
    for (int again = 0; again < 2; ++again) try {
            ids(reader, "");
            ADD_FAILURE() << "a shard is missing";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("trace.d/b.db: no such file: it holds the events of rank 1"),
                      std::string::npos)
                << error.what();
        }
}

TEST_F(ShardsTest, ShardsOfAnotherCollectionAreRefused) {
    const std::filesystem::path kept = m_folder.path() / "kept.db";
    std::filesystem::copy_file(shard("b.db"), kept);
    write("other mark");
    TraceReader{database()};
    std::filesystem::copy_file(kept, shard("b.db"), std::filesystem::copy_options::overwrite_existing);
    try {
        TraceReader{database()};
        ADD_FAILURE() << "the shard is of an older collection";
    } catch (const Error& error) {
        EXPECT_EQ(error.file(), shard("b.db").string());
        EXPECT_NE(error.cause().find("another collection"), std::string::npos);
    }
}

TEST_F(ShardsTest, AMarkIsThatOfAShardOrOfATraceWithShards) {
    EXPECT_EQ(shardMarkIn(shard("a.db"), kShardOfKey), "mark");
    EXPECT_EQ(shardMarkIn(database(), kShardsKey), "mark");
    EXPECT_EQ(shardMarkIn(database(), kShardOfKey), "");
    EXPECT_EQ(shardMarkIn(shard("none.db"), kShardOfKey), "");
    std::filesystem::create_symlink(shard("a.db"), shard("link.db"));
    EXPECT_EQ(shardMarkIn(shard("link.db"), kShardOfKey), "mark");
    std::ofstream(shard("text.db")) << "no database";
    EXPECT_EQ(shardMarkIn(shard("text.db"), kShardOfKey), "");
    EXPECT_NE(newShardMark(), newShardMark());
    EXPECT_EQ(newShardMark().size(), 32u);
}

TEST_F(ShardsTest, EventsThatAreMissingOrAnotherRanksAreRefusedWhereTheShardIs) {
    const auto change = [&](const char* sql) { Database(shard("a.db").string(), OpenMode::readWrite).execute(sql); };
    std::filesystem::remove(shard("b.db"));
    TraceReader{database(), {}, MisplacedRows::refused, MissingShards::elsewhere};
    change("DELETE FROM kernel WHERE id = 3");
    EXPECT_THROW((TraceReader{database(), {}, MisplacedRows::refused, MissingShards::elsewhere}), Error);
    TraceReader{database(), {}, MisplacedRows::lookedFor, MissingShards::elsewhere};
}

TEST_F(ShardsTest, ExtentsOfTwoRanksOrOfNoShardAreRefused) {
    for (const char* damage : {"UPDATE extent SET first_id = 5 WHERE rank = 2", "DELETE FROM shard WHERE rank = 1",
                               "DELETE FROM rank WHERE rank = 1"}) {
        write("mark");
        TraceReader{database()};
        Database(database().string(), OpenMode::readWrite).execute(damage);
        EXPECT_THROW(TraceReader{database()}, Error) << damage;
        EXPECT_THROW((TraceReader{database(), {}, MisplacedRows::refused, MissingShards::elsewhere}), Error) << damage;
    }
}

TEST_F(ShardsTest, ATraceWithShardsHasNoEventsOfItsOwn) {
    Database(database().string(), OpenMode::readWrite)
        .execute(
            "INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, nccl) VALUES (9, 1, 1, 1, 1, 1, 0)");
    EXPECT_THROW(TraceReader{database()}, Error);
}

}  // namespace
}  // namespace rankscope::store
