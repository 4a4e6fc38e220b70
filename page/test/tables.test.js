/** Tables that are dropped onto the page, and the commands that it prints. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { commands, python, quoted, typed } from "../view/commands.js";

const skip = existsSync(new URL("../node_modules/d3-dsv", import.meta.url)) ? false : "page/node_modules is missing: npm ci --prefix page";
const { guess, looksLikePeople, peopleOf, publicGroups, readTable } = skip ? {} : await import("../view/tables.js");
const SETTINGS = { item: "item", count: "count", by: "", comma: false };
const file = (text, name = "table.csv") => new File([text], name);

test("separators are found, quotes and empty lines are understood", { skip }, async () => {
  for (const separator of [",", ";", "\t", "|"]) {
    const table = await readTable(file(`item${separator}count\n"a ""b"""${separator}3\n\nc${separator}1\n`));
    assert.deepEqual(table.columns, { item: ['a "b"', "c"], count: ["3", "1"] });
  }
});

test("text that is no UTF-8 is read as Windows writes it, and gzip is unpacked", { skip }, async () => {
  const latin = await readTable(new File([Uint8Array.of(105, 10, 233, 10)], "t.csv"));
  assert.deepEqual(latin.columns, { i: ["é"] });
  const packed = await new Response(new Blob(["i\nx\n"]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  assert.deepEqual((await readTable(new File([packed], "t.csv.gz"))).columns, { i: ["x"] });
});

test("what is no table is refused in words", { skip }, async () => {
  await assert.rejects(readTable(file("item,count\n")), /no rows/);
  await assert.rejects(readTable(file("item,item\na,b\n")), /the same name/);
  await assert.rejects(readTable(file("no gzip", "t.csv.gz")), /no gzip file/);
  await assert.rejects(readTable(file("x", "t.xlsx")), /save the sheet as CSV/);
  await assert.rejects(readTable(file("PAR1 and nothing else", "t.parquet")), /cannot be read here/);
  await assert.rejects(readTable(new File([Uint8Array.of(1, 0, 2)], "t.bin")), /no CSV and no Parquet/);
});

test("public data are added up, in the order of their names", { skip }, async () => {
  const table = await readTable(file("item,count,g\nb,1,y\na,2,x\nb,3,x\na,1,y\n"));
  assert.deepEqual(publicGroups(table, SETTINGS), [{ name: "all", categories: ["a", "b"], weights: [3, 4] }]);
  assert.deepEqual(publicGroups(table, { ...SETTINGS, count: "" })[0].weights, [2, 2]);
  const groups = publicGroups(table, { ...SETTINGS, by: "g" });
  assert.deepEqual(groups.map(({ name, weights }) => [name, weights]), [["x", [2, 3]], ["y", [1, 1]]]);
});

test("amounts that are none are refused, and a decimal comma is one if it is said", { skip }, async () => {
  const table = await readTable(file("item;count\na;1,5\nb;2\n"));
  assert.throws(() => publicGroups(table, SETTINGS), /amounts are numbers/);
  assert.deepEqual(publicGroups(table, { ...SETTINGS, comma: true })[0].weights, [1.5, 2]);
  for (const cell of ["-1", "x", "", "inf", "0x10", "1_0"])
    assert.throws(() => publicGroups({ columns: { item: ["a", "b"], count: ["1", cell] } }, SETTINGS), /amounts are numbers/);
  assert.throws(() => publicGroups({ columns: { item: ["a", "b"], count: ["1", "0"] } }, SETTINGS), /1 categories have no count/);
  assert.throws(() => publicGroups({ columns: { item: ["a", "a"], count: ["1", "2"] } }, SETTINGS), /at least two categories/);
});

test("names are text or integers, and none is missing", { skip }, () => {
  const made = (item, g = ["x", "x"]) => publicGroups({ columns: { item, count: ["1", "2"], g } }, { ...SETTINGS, by: "g" });
  assert.deepEqual(made([1n, 2]).map(({ categories }) => categories), [["1", "2"]]);
  for (const wrong of [["a", ""], ["a", null], ["a", new Date(0)], [true, false], ["a", 1.5], ["a", ["b"]]]) assert.throws(() => made(wrong), /category/);
  assert.throws(() => made(["a", "b"], ["x", ""]), /group/);
});

test("tables of people are recognised", { skip }, () => {
  const ids = Array.from({ length: 40 }, (_, i) => `p${i % 20}`);
  const items = Array.from({ length: 40 }, (_, i) => (i < 20 ? "a" : "b"));
  assert.equal(looksLikePeople({ columns: { patient: ids, item: items } }, { item: "item", count: "", by: "" }), "patient");
  assert.equal(looksLikePeople({ columns: { item: ["a", "b"], count: ["1", "1"], year: ["1", "1"] } }, { item: "item", count: "count", by: "" }), undefined);
});

test("people have the categories of the public data", { skip }, () => {
  const table = { columns: { who: ["ann", "bob", "ann", "cyd"], item: ["a", "b", "a", "z"] } };
  const settings = { ...SETTINGS, count: "", user: "who" };
  const made = peopleOf(table, settings, [{ name: "all", categories: ["a", "b"] }]);
  assert.deepEqual(made, { found: [[[[0, 2]], [[1, 1]]]], number: 2, unknown: 1, elsewhere: 0 });
  const grouped = { columns: { ...table.columns, region: ["n", "n", "n", "w"] } };
  const { number, elsewhere } = peopleOf(grouped, { ...settings, by: "region" }, [{ name: "n", categories: ["a", "b"] }]);
  assert.deepEqual([number, elsewhere], [2, 1]);
  assert.throws(() => peopleOf(table, settings, [{ name: "all", categories: ["q"] }]), /no person/);
});

test("columns are guessed by their names, then by what they hold", { skip }, () => {
  assert.deepEqual(guess({ columns: { user: ["1"], item: ["a"], weight: ["2"] } }), { use: "people", item: "item", count: "weight", by: "", user: "user" });
  assert.equal(guess({ columns: { n: ["1"], film: ["a"] } }).item, "film");
});

test("words of a command are quoted as a shell needs it", () => {
  assert.equal(quoted("a/b-c.csv"), "a/b-c.csv");
  assert.match(commands({ prior: "-d.csv", item: "item" }, { epsilon: 1, row: { name: "blend", options: {} }, options: { keepPrior: true } })[0].command, / choose \.\/-d\.csv /);
  assert.equal(quoted("it's $(x)"), `'it'"'"'s $(x)'`);
  assert.equal(typed({ name: "fitted", options: { scale: 2, exponent: 0.5 } }), "fitted");
  assert.equal(typed({ name: "fitted", options: { promise: 0.25 } }), "fitted:promise=0.25");
  assert.equal(typed({ name: "nearest", options: { share: 0.4, geometry: {} } }), "nearest:share=0.4");
});

test("commands name the files, the columns and the wishes", () => {
  const source = { prior: "my votes.csv", item: "genre", count: "votes", by: "region", read: "separator=semicolon", users: { path: "p.csv", user: "who", item: "what", weight: "" } };
  const options = { oneRecord: true, sameForEverybody: false, keepPrior: true };
  const [choose, design, release] = commands(source, { epsilon: 2, row: { name: "minimax_kernel", options: {} }, recommended: true, options, horizon: 12 }).map(({ command }) => command);
  assert.equal(choose, "sottovoce choose 'my votes.csv' -e 2 --one-record --item genre --count votes --by region --read separator=semicolon");
  assert.equal(design, "sottovoce design 'my votes.csv' -e 2 -s minimax-kernel -o mechanism.json --item genre --count votes --by region --read separator=semicolon");
  assert.equal(release, "sottovoce release mechanism.json p.csv --max-epsilon 2 -o released.csv --user who --item what --by region");
  const lines = python({ source, group: { name: "x", categories: ["a"], weights: [1] }, epsilon: 2, row: { name: "minimax_kernel", options: {} }, recommended: true, options, counts: new Map([[0, 2]]) });
  assert.match(lines, /sv\.choose\(prior, 2, one_record=True\)/);
});
