/** Streams: any number of releases of a user for one ε. The state goes from release to release; keep it private. */
import { certify } from "./certificate.js";
import { fromCounts, fromRecords, fromShares } from "./counts.js";
import { judge, random } from "./mechanism.js";
import { Refused, need } from "./refuse.js";
import { checkedState, firstState, lostState, prepareStream, roomOf, stateOf, stepFrom, textOf, unitsOfR } from "./steps.js";
import { parse } from "./text.js";
import { wordsOf } from "./draw.js";

export { Refused };

const isCount = (value, least, most) => Number.isSafeInteger(value) && value >= least && value <= most;

const FIELDS = ["prior", "start", "pace", "persistence"];

/** What a release reads from the generator. */
const BYTES = 8;

/** The fields of a stream, and its certificate. */
const STREAM = {
  kinds: new Map([["stream", FIELDS], ["nearest-stream", [...FIELDS, "parents", "lengths"]]]),
  read(get, prior, up, down) {
    const [start, pace, persistence] = ["start", "pace", "persistence"].map(get);
    need(typeof start === "string" && /^(0|[1-9]\d{0,18})$/.test(start), "value", "start");
    need(Array.isArray(pace) && [...pace, persistence].every(Number.isSafeInteger), "value", "stream");
    const begin = BigInt(start);
    need(up >= down && up < down << 40n, "certificate", "epsilon does not hold");
    const { one, most } = unitsOfR(up, down);
    const holds =
      begin >= one && begin <= most && isCount(pace.length, 1, 4096) &&
      pace.every((one) => isCount(one, 0, 256)) && isCount(persistence, 0, 1023);
    need(holds, "certificate", "epsilon does not hold");
    return { prior, start: begin, pace, persistence, one, most };
  },
};

/** Check the bytes of a file of a stream in full and hold it against the policy. */
export async function loadStream(bytes, policy) {
  const accept = judge(policy);
  const parts = await certify(parse(bytes, policy.maxCategories), STREAM);
  accept(parts.digest, [parts]);
  let ready;
  const released = (user, state) => {
    const [i, next] = stepFrom((ready ??= prepareStream(parts)), user, checkedState(parts, state), wordsOf(random(BYTES))[0]);
    return Object.freeze({ category: parts.names[i], state: next });
  };
  return Object.freeze({
    digest: parts.digest,
    epsilon: parts.epsilon.join("/"),
    kind: parts.kind,
    sampler: parts.sampler,
    categories: Object.freeze([...parts.names]),
    keepsPrior: parts.keeps,
    provenance: parts.provenance,
    bytes: BYTES,
    start: () => firstState(parts),
    lost: (step, last) => lostState(parts, step, last),
    toText: (state) => textOf(checkedState(parts, state)),
    fromText: (text) => stateOf(parts, text),
    room: (state) => roomOf(parts, checkedState(parts, state)),
    release: (records, state, options) => released(fromRecords(parts, records, options), state),
    releaseCounts: (map, state, options) => released(fromCounts(parts, map, options), state),
    releaseShares: (p, state) => released(fromShares(parts, p), state),
  });
}
