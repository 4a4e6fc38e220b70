import { certifyGroups } from "./certificate_groups.js";
import { judge, mechanism } from "./mechanism.js";
import { need } from "./refuse.js";
import { parse } from "./text.js";

/** Like `load`, for a file of groups. `by` is told only if the policy names this very file. */
export async function loadGroups(bytes, policy) {
  const accept = judge(policy);
  const plain = parse(bytes, policy.maxCategories);
  const found = await certifyGroups(plain);
  const pinned = accept(plain.get("digest"), found.map(([, parts]) => parts));
  const groups = new Map(found.map(([name, parts]) => [name, Object.freeze({ ...mechanism(parts), group: name })]));
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
