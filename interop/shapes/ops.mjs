// The engine works on tables whose data files are ours: merge-insert, update, delete, scalar and vector index,
// vector search and compaction. It changes the tables.  node ops.mjs OUR_DB ("_2_1" tables in it)
import * as lancedb from "@lancedb/lancedb";
const db = await lancedb.connect(process.argv[2]);
const must = (ok, what) => { if (!ok) { console.log("FAIL", what); process.exitCode = 1; } else console.log("ok  ", what); };
const ids = await db.openTable("s_id_2_1");
const before = await ids.countRows();
await ids.mergeInsert("s_id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
  .execute([{ s_id: "k00000005" }, { s_id: "k99999999" }]);
must(await ids.countRows() === before + 1, "merge-insert: one row replaced, one inserted");
await ids.delete("s_id = 'k00000007'");
must(await ids.countRows() === before, "delete");
await ids.createIndex("s_id", { config: lancedb.Index.btree() });
must((await ids.query().where("s_id = 'k00000005'").toArray()).length === 1, "BTREE: a row is found once");
must((await ids.query().where("s_id = 'k00000007'").toArray()).length === 0, "BTREE: a deleted row is not found");
await ids.optimize();
must(await ids.countRows() === before, "compaction keeps the rows");
must((await ids.query().where("s_id = 'k99999999'").toArray()).length === 1, "a row is found after compaction");
const vectors = await db.openTable("v128_2_1");
const some = (await vectors.query().limit(3).toArray()).map(r => Array.from(r.v128));
await vectors.createIndex("v128", { config: lancedb.Index.ivfPq({ numPartitions: 4, numSubVectors: 16 }) });
for (const v of some) {
  const hit = (await vectors.vectorSearch(v).nprobes(4).refineFactor(50).limit(1).toArray())[0];
  must(Array.from(hit.v128).every((x, i) => x === v[i]), "IVF_PQ: a vector finds itself");
}
await vectors.optimize();
must(await vectors.countRows() > 0, "compaction of vectors");
const numbers = await db.openTable("i64seq_2_1");
await numbers.update({ where: "i64seq < 10", values: { i64seq: "-1" } });
must(await numbers.countRows("i64seq = -1") === 10, "update");
const lists = await db.openTable("l_st_2_1");
const n = await lists.countRows();
await lists.delete("l_st IS NULL");
await lists.optimize();
must(await lists.countRows() <= n, "lists of structs: delete and compaction");
for (const name of ["s_id_2_1", "v128_2_1", "i64seq_2_1", "l_st_2_1"])
  console.log("rows", name + ".lance", await (await db.openTable(name)).countRows());
