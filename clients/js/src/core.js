import { certify } from "./certificate.js";
import { judge, mechanism, random } from "./mechanism.js";
import { Refused, need } from "./refuse.js";
import { isAnswer } from "./report.js";
import { hex, parse } from "./text.js";

export { Refused };

/** Check the bytes of a mechanism file in full and hold it against the policy. */
export async function load(bytes, policy) {
  const accept = judge(policy);
  const parts = await certify(parse(bytes, policy.maxCategories));
  accept(parts.digest, [parts]);
  return mechanism(parts);
}

/** What is sent to a collector: the id is new, random, and made from nothing else. Send the same report again until it is answered. */
export function report(mechanism, category) {
  const { digest, group } = mechanism;
  need(isAnswer(mechanism, category), "user", "not a category of this mechanism");
  return Object.freeze({ mechanism: digest, id: hex(random(16)), category, ...(group && { group }) });
}
