import { certify, isLabel, onlyKeys, signed } from "./certificate.js";
import { need } from "./refuse.js";

/** Check a parsed file of groups; pairs of a name and the parts of its mechanism. */
export async function certifyGroups(plain) {
  need(plain instanceof Map && plain.get("format") === "sottovoce-mechanisms", "format", "not a file of groups");
  need(plain.get("version") === 1, "format", "an unknown version");
  onlyKeys(plain, ["format", "version", "by", "groups", "digest"]);
  const by = plain.get("by");
  const groups = plain.get("groups");
  need(isLabel(by), "value", "by is not a label");
  const column = by.normalize("NFKC").trim().toLowerCase();
  need(!["", "user", "item", "weight", "count"].includes(column), "value", "by is not the name of a group's column");
  need(groups instanceof Map && groups.size > 0 && groups.size <= 10000, "value", "not 1 to 10,000 groups");
  const found = [];
  for (const [name, one] of groups) {
    need(isLabel(name), "value", "the name of a group is not a label");
    found.push([name, await certify(one)]);
  }
  await signed(plain);
  return found;
}
