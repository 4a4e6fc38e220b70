/**
 * The budget of a device: how much ε all its releases may cost together. Each release goes through four steps, and a
 * crash between any two costs at most a charge, never privacy: the charge is stored, then the category is drawn, then
 * the answer is stored, then it is returned. The first answer stays: asking again for the same mechanism, group and
 * epoch returns it, whatever the records are now.
 *
 * A stream is charged once, at its first visit. Charge, answer and next state are stored in one step, before the answer
 * is returned; a state that is not stored was never used.
 *
 * A store has one function, `update(change)`: it hands the state to `change` (null if there is none), stores what comes
 * back before it resolves, and lets nobody else in between. If `change` throws, nothing is stored.
 */
import { Refused, report } from "./core.js";
import { fromCounts, fromRecords } from "./counts.js";
import { limit } from "./numbers.js";
import { need } from "./refuse.js";
import { isAnswer, isReport } from "./report.js";

export { Refused };

const MICRO = 1000000n;

/** ε of a mechanism in millionths, rounded up. */
const costOf = (mechanism) => {
  const [a, b] = mechanism.epsilon.split("/").map(BigInt);
  return Number((a * MICRO + b - 1n) / b);
};

/** Two groups can have the same mechanism, and are two entries. */
const keyOf = ({ digest, group }) => (group === undefined ? digest : digest + " " + group);

/** [key, epoch, answer]: the answer is null where it was charged and not drawn, else a report of what the key names. */
const isEntry = (one) =>
  Array.isArray(one) && one.length === 3 && typeof one[0] === "string" && typeof one[1] === "string" && one[1] !== "" &&
  (one[2] === null || (isReport(one[2]) && keyOf({ digest: one[2].mechanism, group: one[2].group }) === one[0]));

/** What is stored, if the mechanism can have released it. Whatever else it is, it is not shown, and not drawn again. */
function shown(mechanism, stored) {
  need(isReport(stored) && isAnswer(mechanism, stored.category), "budget", "a stored answer is damaged; nothing is released");
  return Object.freeze({ ...stored });
}

/** A state as it must be; anything else is damage, and is never taken for an empty budget. */
function sound(state, total) {
  const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
  const good = state && state.version === 1 && isCount(state.limit) && isCount(state.spent) && Array.isArray(state.answers);
  need(good && state.answers.every(isEntry), "budget",
    "what is stored is damaged; it is left as it is, and nothing is released");
  const streams = state.streams ?? [];
  need(Array.isArray(streams) && streams.every((one) => Array.isArray(one) && one.length === 2), "budget",
    "the states of streams are damaged; nothing is released");
  need(state.limit === total, "budget", "this budget was made with another limit, of " + state.limit / 1e6);
  return state;
}

/** Open the budget in a store; `begin: false` refuses where nothing is stored, instead of beginning anew. */
export async function openWith(store, { limit: epsilon, begin = true }, told = {}) {
  const [a, b] = limit(epsilon);
  const total = Number((a * MICRO) / b);
  need(Number.isSafeInteger(total), "budget", "too large a limit");
  let fresh = false;
  await store.update((state) => {
    fresh = state === null;
    need(begin || !fresh, "budget", "nothing is stored: it was never begun here, or it was deleted or evicted");
    return fresh ? { version: 1, limit: total, spent: 0, answers: [] } : sound(state, total);
  });

  /** Change the state and give back what `change` gives. */
  const within = async (change) => {
    let result;
    await store.update((state) => {
      need(state !== null, "budget", "what was stored is gone: deleted or evicted; nothing is released");
      result = change(sound(state, total));
      return state;
    });
    return result;
  };
  const entry = (state, key, epoch) => state.answers.find((one) => one[0] === key && one[1] === epoch);

  /** `draw` is called at most once, after the charge is stored. */
  const ask = async (mechanism, epoch, draw) => {
    need(!mechanism.start, "call", "a stream is released by visit");
    need(typeof epoch === "string" && epoch, "budget", "an epoch is a text that is not empty");
    const cost = costOf(mechanism);
    const key = keyOf(mechanism);
    const stored = await within((state) => {
      const known = entry(state, key, epoch);
      if (known) return known[2];
      need(state.spent + cost <= state.limit, "budget", "not enough is left; nothing was charged");
      state.spent += cost;
      state.answers.push([key, epoch, null]);
      return null;
    });
    if (stored) return shown(mechanism, stored);
    const drawn = report(mechanism, draw());
    // Another tab may have been faster, or a crash may have left a charge without an answer: the first stored one counts.
    return within((state) => {
      const known = entry(state, key, epoch);
      need(known, "budget", "the charge is gone: the storage was cleared meanwhile; nothing is released");
      known[2] ??= { ...drawn };
      return shown(mechanism, known[2]);
    });
  };

  /** One visit of a stream: the answer of the epoch, or the next release and the state that follows. */
  const visit = (stream, epoch, records, options) => {
    need(stream.start, "call", "visit takes a stream");
    need(typeof epoch === "string" && epoch, "budget", "an epoch is a text that is not empty");
    const key = keyOf(stream);
    const life = keyOf({ ...stream, digest: stream.epsilon }); // a new file with the same ε carries it on
    return within((state) => {
      const known = entry(state, key, epoch);
      if (known) return shown(stream, known[2]);
      state.streams ??= [];
      let own = state.streams.find((one) => one[0] === life);
      if (!own) {
        const cost = costOf(stream);
        need(state.spent + cost <= state.limit, "budget", "not enough is left; nothing was charged");
        state.spent += cost;
        state.streams.push((own = [life, stream.toText(stream.start())]));
      }
      const { category, state: next } = stream.release(records, stream.fromText(own[1]), options);
      own[1] = stream.toText(next);
      const made = report(stream, category);
      state.answers.push([key, epoch, { ...made }]);
      return made;
    });
  };

  /** What the mechanism would refuse is refused before anything is charged. */
  const lookup = ({ categories }) => ({ position: new Map(categories.map((name, i) => [name, i])) });
  return Object.freeze({
    fresh,
    ...told,
    async release(mechanism, epoch, records, options) {
      fromRecords(lookup(mechanism), records, options);
      return ask(mechanism, epoch, () => mechanism.release(records, options));
    },
    async releaseCounts(mechanism, epoch, map, options) {
      fromCounts(lookup(mechanism), map, options);
      return ask(mechanism, epoch, () => mechanism.releaseCounts(map, options));
    },
    async visit(stream, epoch, records, options) {
      fromRecords(lookup(stream), records, options);
      return visit(stream, epoch, records, options);
    },
    room: (stream) => within(({ streams = [] }) => {
      const own = streams.find((one) => one[0] === keyOf({ ...stream, digest: stream.epsilon }));
      return stream.room(own ? stream.fromText(own[1]) : stream.start());
    }),
    left: () => within((state) => (state.limit - state.spent) / 1e6),
  });
}
