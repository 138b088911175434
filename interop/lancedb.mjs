// LanceDB's side of the checks: reads and writes tables on behalf of engines.py. Arrow IPC streams carry
// the rows both ways. Run it in the directory whose node_modules holds @lancedb/lancedb.
//
//   node lancedb.mjs names  DATABASE
//   node lancedb.mjs rows   DATABASE TABLE OUT.arrow
//   node lancedb.mjs make   DATABASE TABLE ROWS.arrow VERSION STABLE GONE
//   node lancedb.mjs upsert DATABASE TABLE KEY[,KEY…] ROWS.arrow
//   node lancedb.mjs optimize DATABASE TABLE
//   node lancedb.mjs namespace DATABASE
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "package.json"));
const lancedb = require("@lancedb/lancedb");
const arrow = require("apache-arrow");

const print = (value) => console.log(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? Number(v) : v)));

const commands = {
  async names(db) {
    print(await db.tableNames());
  },
  async rows(db, name, out) {
    const table = await db.openTable(name);
    let rows = await table.query().toArrow();
    if (rows.numRows === 0) rows = new arrow.Table(await table.schema()); // no batch came, and no schema with it
    const count = await table.countRows();
    if (count !== rows.numRows) throw new Error(`countRows ${count}, query ${rows.numRows}`);
    writeFileSync(out, arrow.tableToIPC(rows, "stream"));
  },
  async make(db, name, file, version, stable, gone) {
    const rows = arrow.tableFromIPC(readFileSync(file));
    const half = rows.numRows >> 1;
    const table = await db.createTable(name, rows.slice(0, half), {
      storageOptions: { new_table_data_storage_version: version, new_table_enable_stable_row_ids: stable },
    });
    await table.add(rows.slice(half));
    await table.createIndex("v", { config: lancedb.Index.btree() });
    await table.createIndex("name", { config: lancedb.Index.fts() });
    await table.createIndex("vec", { config: lancedb.Index.ivfPq({ numPartitions: 2, numSubVectors: 2 }) });
    await table.delete(gone);
  },
  async upsert(db, name, keys, file) {
    const table = await db.openTable(name);
    const result = await table
      .mergeInsert(keys.split(","))
      .whenMatchedUpdateAll()
      .whenNotMatchedInsertAll()
      .execute(arrow.tableFromIPC(readFileSync(file)));
    print(result);
  },
  async optimize(db, name) {
    print(await (await db.openTable(name)).optimize());
  },
  async namespace() {
    const space = await lancedb.connectNamespace("dir", { root: database });
    print(await space.tableNames());
  },
};

const [command, database, ...rest] = process.argv.slice(2);
if (!(command in commands)) throw new Error(`unknown command ${command}`);
const db = await lancedb.connect(database);
await commands[command](db, ...rest);
