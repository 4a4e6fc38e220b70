import { certify, isLabel, onlyKeys, signed } from "./certificate.js";
import { judge, mechanism } from "./mechanism.js";
import { need } from "./refuse.js";
import { parse } from "./text.js";

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

/** Like `load`, for a file of groups. `by` is told only if the policy names this very file. */
export async function loadGroups(bytes, policy) {
  const accept = judge(policy);
  const plain = parse(bytes);
  const found = await certifyGroups(plain);
  const pinned = accept(plain.get("digest"), found.map(([, parts]) => parts));
  const groups = new Map(found.map(([name, parts]) => [name, mechanism(parts)]));
  return Object.freeze({
    digest: plain.get("digest"),
    by: pinned ? plain.get("by") : null,
    names: Object.freeze([...groups.keys()]),
    get(name) {
      need(groups.has(name), "user", "there is no such group");
      return groups.get(name);
    },
  });
}
