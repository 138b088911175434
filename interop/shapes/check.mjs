import * as lancedb from "@lancedb/lancedb";
import * as T from "apache-arrow";
import * as fs from "fs";
const dir=process.argv[2]; const GEN=process.env.SHAPES_TXT||"./shapes-txt";
const fb=new DataView(new ArrayBuffer(8));
export function canon(v,t){
 if(v===null||v===undefined) return "N";
 if(T.DataType.isBool(t)) return v?"1":"0";
 if(T.DataType.isInt(t)) return BigInt(v).toString();
 if(T.DataType.isFloat(t)){ if(t.precision===1){fb.setFloat32(0,v);return fb.getUint32(0).toString(16);} fb.setFloat64(0,v); return fb.getBigUint64(0).toString(16);}
 if(T.DataType.isDate(t)) return String(Math.floor(+v/86400000));
 if(T.DataType.isTimestamp(t)) { const u=t.unit; return u===2?String(BigInt(Math.round(Number(v)))*1000n):String(v); }
 if(T.DataType.isUtf8(t)||T.DataType.isLargeUtf8(t)) return JSON.stringify(v);
 if(T.DataType.isBinary(t)||T.DataType.isLargeBinary(t)||T.DataType.isFixedSizeBinary(t)) return Buffer.from(v).toString("hex");
 if(T.DataType.isFixedSizeList(t)||T.DataType.isList(t)) return "["+[...v].map(x=>canon(x,t.children[0].type)).join(",")+"]";
 if(T.DataType.isStruct(t)) return "{"+t.children.map(f=>f.name+":"+canon(v[f.name],f.type)).join(",")+"}";
 throw new Error("type "+t);
}
const db=await lancedb.connect(dir);
let ok=0,tot=0;
for(const name of (await db.tableNames({limit:10000}))){
 const k=name.slice(0,-4);
 tot++;
 try{
  const exp=fs.readFileSync(GEN+"/"+k+".txt","utf8").trimEnd().split("\n");
  const t=await db.openTable(name);
  const at=await t.query().toArrow();
  const ty=at.schema.fields[0].type;
  let bad=0,i=0;
  if(at.numRows!==exp.length) throw new Error("rows "+at.numRows);
  for(const r of at){ const g=canon(r[k],ty); if(k==="i64wide"?BigInt.asIntN(64,BigInt(exp[i])).toString()!==g:g!==exp[i]){ if(bad<2)console.log("  ",name,i,g.slice(0,100),exp[i].slice(0,100)); bad++;} i++; }
  // random access
  const offs=[...new Set([0,1,2,7,63,64,65,1000,1023,1024,1025,2047,2048,3333,exp.length-2,exp.length-1].filter(x=>x>=0&&x<exp.length))].sort((a,b)=>a-b);
  const tk=await t.takeOffsets(offs).toArrow();
  const got=[...tk].map(r=>canon(r[k],ty)); 
  const want=offs.map(o=>k==="i64wide"?BigInt.asIntN(64,BigInt(exp[o])).toString():exp[o]);
  for(let j=0;j<want.length;j++) if(got[j]!==want[j]){ if(bad<4)console.log("  take",name,offs[j],got[j]?.slice(0,80),want[j].slice(0,80)); bad++; }
  // range
  const rg=await t.query().offset(Math.min(1500,exp.length>>1)).limit(37).toArrow(); let o=Math.min(1500,exp.length>>1); 
  for(const r of rg){ const g=canon(r[k],ty); const w=k==="i64wide"?BigInt.asIntN(64,BigInt(exp[o])).toString():exp[o]; if(g!==w){ if(bad<6)console.log("  range",name,o,g.slice(0,80),w.slice(0,80)); bad++;} o++; }
  if(bad) console.log("FAIL",name,"BAD",bad); else { ok++; console.log("ok  ",name); }
 }catch(e){ console.log("FAIL",name,"ERR",String(e).slice(0,400)); }
}
console.log(dir,"ok",ok,"of",tot);
if(ok!==tot||!tot) process.exitCode=1;
