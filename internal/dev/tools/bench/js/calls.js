// What a permission check costs inside Deno and Node, printed as Go's
// benchmarks are: an operation that is checked by name, and a stat of this file.
const isDeno = typeof Deno !== "undefined";
const fs = isDeno ? null : require("node:fs");
const file = isDeno ? Deno.args[0] : process.argv[2];

const ops = {
  Name: isDeno
    ? () => Deno.env.get("notes").length
    : () => process.permission.has("fs.read", file),
  Stat: isDeno ? () => Deno.statSync(file).size : () => fs.statSync(file).size,
};

const turns = 20000;
for (const [name, op] of Object.entries(ops)) {
  let sum = 0;
  let best = Infinity;
  for (let round = 0; round < 5; round++) {
    const began = performance.now();
    for (let i = 0; i < turns; i++) sum += Number(op());
    best = Math.min(best, performance.now() - began);
  }
  if (sum === 0) throw new Error(`${name} did nothing`);
  console.log(`Benchmark${name} ${turns} ${(best * 1e6 / turns).toFixed(1)} ns/call`);
}
