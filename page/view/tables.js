/** Tables that are dropped onto the page: CSV (also gzip) and Parquet, read here and sent nowhere. */
import { dsvFormat } from "d3-dsv";
import { decompress } from "fzstd";
import { parquetMetadataAsync, parquetReadObjects } from "hyparquet";

export const SEPARATORS = { comma: ",", semicolon: ";", tab: "\t", pipe: "|" };
const MOST_BYTES = 100e6;
const AMOUNTS = ["count", "weight", "probability"];

async function unpacked(file) {
  if (!/\.gz$/i.test(file.name)) return file.arrayBuffer();
  try {
    return await new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  } catch {
    throw new Error("the file is no gzip file, or it is damaged");
  }
}

/** Text in UTF-8 or, where that is impossible, as Western European Windows writes it; and what that is called. */
function decoded(bytes) {
  try {
    return [new TextDecoder("utf-8", { fatal: true }).decode(bytes), ""];
  } catch {
    return [new TextDecoder("windows-1252").decode(bytes), "cp1252"];
  }
}

/** The separator that the first line has most of. */
function separatorOf(text) {
  const line = text.slice(0, text.indexOf("\n") + 1 || undefined);
  const counts = Object.entries(SEPARATORS).map(([name, one]) => [line.split(one).length, name]);
  return counts.sort((a, b) => b[0] - a[0])[0][1];
}

/** The columns of a text: { name: [texts] }. */
function columnsOf(text, separator) {
  const [head, ...rows] = dsvFormat(SEPARATORS[separator]).parseRows(text);
  if (!head || !rows.length) throw new Error("the file has no rows below its header");
  if (new Set(head).size < head.length) throw new Error("two columns of the file have the same name");
  const full = rows.filter((row) => row.length > 1 || row[0] !== "" || head.length === 1);
  return Object.fromEntries(head.map((name, j) => [name, full.map((row) => row[j] ?? "")]));
}

async function parquetColumns(file) {
  try {
    const metadata = await parquetMetadataAsync(file);
    const rows = await parquetReadObjects({ file, metadata, compressors: { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) } });
    if (!rows.length) throw new Error("the file has no rows");
    return Object.fromEntries(Object.keys(rows[0]).map((name) => [name, rows.map((row) => row[name])]));
  } catch (problem) {
    throw new Error(`this Parquet file cannot be read here (${problem.message}); save it as CSV, or pass it to sottovoce explore`);
  }
}

/** A dropped file as a table: its name, its columns, and for a text the separator and how to read it with another one. */
export async function readTable(file) {
  if (file.size > MOST_BYTES) throw new Error("the file is larger than 100 MB: pass it to sottovoce explore");
  if (/\.(xlsx?|ods)$/i.test(file.name)) throw new Error("workbooks are read by sottovoce explore; here, save the sheet as CSV first");
  const bytes = await unpacked(file);
  const magic = new TextDecoder("latin1").decode(bytes.slice(0, 4));
  if (magic === "PAR1") return { name: file.name, columns: await parquetColumns(bytes) };
  const [text, encoding] = decoded(bytes);
  if (text.includes("\0")) throw new Error("this is no CSV and no Parquet file");
  const read = (separator) => ({ name: file.name, separator, encoding, columns: columnsOf(text, separator), again: read });
  return read(separatorOf(text));
}

/** The columns that are most likely meant. */
export function guess({ columns }) {
  const names = Object.keys(columns);
  const named = (...wanted) => names.find((name) => wanted.includes(name.toLowerCase()));
  const isText = (name) => columns[name].slice(0, 100).some((value) => Number.isNaN(Number(value)));
  const user = named("user");
  return {
    use: user ? "people" : "public",
    item: named("item") ?? names.find((name) => name !== user && isText(name)) ?? names[0],
    count: named(...AMOUNTS) ?? "",
    by: "",
    user: user ?? names[0],
  };
}

/** A number from 0 on; digits as people write them, so that 0x10 is none. */
function amountOf(value, comma) {
  const text = String(value ?? "").trim();
  const amount = Number(comma ? text.replace(",", ".") : text);
  if (!/^[+]?[\d.,]+(e[+-]?\d+)?$/i.test(text) || !(amount >= 0 && amount < Infinity))
    throw new Error(`the column of amounts has ${text === "" ? "an empty cell" : `a cell "${text}"`}: amounts are numbers from 0 on`);
  return amount;
}

/** A name: text, or an integer. */
function nameOf(value, what) {
  const kind = typeof value;
  if (value === "" || value === null || value === undefined) throw new Error(`some rows have no ${what}: fill them in, or leave them out of the file`);
  if (kind !== "string" && kind !== "bigint" && !Number.isInteger(value)) throw new Error(`the column of the ${what} must hold text or integers`);
  return String(value);
}

/** Amounts by group and key, such as category: Map of Maps. */
function added({ columns }, { item, count, by, comma }, keyOf) {
  const groups = new Map();
  columns[item].forEach((value, i) => {
    const category = nameOf(value, "category");
    const group = by ? nameOf(columns[by][i], "group") : "all";
    if (!groups.has(group)) groups.set(group, new Map());
    const here = groups.get(group);
    const key = keyOf(i);
    if (!here.has(key)) here.set(key, new Map());
    const amount = count ? amountOf(columns[count][i], comma) : 1;
    here.get(key).set(category, (here.get(key).get(category) ?? 0) + amount);
  });
  return groups;
}

const byName = (a, b) => (a < b ? -1 : Number(a > b));

/** Public data: one prior per group over the categories of the whole table, in the order of their names. */
export function publicGroups(table, settings) {
  const groups = added(table, settings, () => "");
  const categories = [...new Set([...groups.values()].flatMap((each) => [...each.get("").keys()]))].sort(byName);
  if (categories.length < 2) throw new Error("public data need at least two categories: choose the column of the categories");
  if (categories.length > 20000) throw new Error(`${categories.length} categories are too many for a page: merge rare ones (sottovoce prior --rare)`);
  return [...groups].sort(([a], [b]) => byName(a, b)).map(([name, amounts]) => {
    const weights = categories.map((category) => amounts.get("").get(category) ?? 0);
    const empty = weights.filter((one) => one === 0).length;
    if (empty) throw new Error(`${settings.by ? `in group ${name} ` : ""}${empty} categories have no count: leave them out (sottovoce prior --rare drop) or smooth (--smoothing)`);
    return { name, categories, weights };
  });
}

/** The column whose values recur with several items, as the users of a history do; undefined where there is none. */
export function looksLikePeople({ columns }, { item, count, by }) {
  const others = Object.keys(columns).filter((name) => ![item, count, by].includes(name));
  return others.find((name) => {
    const items = new Map();
    columns[name].forEach((value, i) => items.set(value, (items.get(value) ?? new Set()).add(columns[item][i])));
    const recurring = [...items.values()].filter((one) => one.size > 1).length;
    return name.toLowerCase() === "user" || (recurring > 0 && items.size > 10 && recurring > items.size / 10);
  });
}

/**
 * People of a table for the groups of the public data: per group a list of [index, amount] lists, how many people there are,
 * how many of their items the public data lack, and how many people are in groups without public data. Without a group column
 * everybody is in every group.
 */
export function peopleOf(table, settings, groups) {
  const tables = added(table, settings, (i) => nameOf(table.columns[settings.user][i], "user"));
  const categories = new Set(groups.flatMap((group) => group.categories.map(String)));
  const known = settings.by ? groups.map(({ name }) => name) : ["all"];
  const elsewhere = [...tables].filter(([name]) => !known.includes(name)).reduce((before, [, people]) => before + people.size, 0);
  const everybody = [...tables].filter(([name]) => known.includes(name)).flatMap(([, people]) => [...people.values()]);
  const unknown = everybody.flatMap((amounts) => [...amounts.keys()]).filter((name) => !categories.has(name)).length;
  const fits = (amounts) => [...amounts].some(([name, amount]) => categories.has(name) && amount > 0);
  const found = groups.map((group) => {
    const index = new Map(group.categories.map((category, i) => [String(category), i]));
    const people = tables.get(settings.by ? group.name : "all") ?? new Map();
    const rows = [...people.values()].map((amounts) =>
      [...amounts].filter(([name, amount]) => index.has(name) && amount > 0).map(([name, amount]) => [index.get(name), amount]));
    return rows.filter((row) => row.length);
  });
  if (!found.some((rows) => rows.length)) throw new Error("no person of this table has a category of the public data: choose other columns");
  return { found, number: everybody.filter(fits).length, unknown, elsewhere };
}
