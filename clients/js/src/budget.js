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
const DAMAGED = "what is stored is damaged or of another version; it is left as it is, and nothing is released";

/** ε of a mechanism in millionths, rounded up. */
const costOf = (mechanism) => {
  const [a, b] = mechanism.epsilon.split("/").map(BigInt);
  return Number((a * MICRO + b - 1n) / b);
};

/** Two groups can have the same mechanism, and are two entries. */
const keyOf = ({ digest, group }) => (group === undefined ? digest : digest + " " + group);

/** What tells one stream from another: its ε, and its group. A new file with the same ε carries it on. */
const lifeOf = (stream) => keyOf({ ...stream, digest: stream.epsilon });
const isLife = (text) => typeof text === "string" && /^[1-9]\d{0,79}\/[1-9]\d{0,399}( |$)/.test(text);

/**
 * [key, epoch, answer, terms]: the terms are the cost in millionths, or the life of a stream, which is paid once for all
 * its visits. The answer is null where it was charged and not drawn, else a report of what the key names.
 */
const isEntry = (one) =>
  Array.isArray(one) && one.length === 4 && typeof one[0] === "string" && typeof one[1] === "string" && one[1] !== "" &&
  (isLife(one[3]) || (Number.isSafeInteger(one[3]) && one[3] > 0)) &&
  (one[2] === null ? !isLife(one[3]) : isReport(one[2]) && keyOf({ digest: one[2].mechanism, group: one[2].group }) === one[0]);

/** [life, record of the state], and how many releases the record says there were. */
const isStream = (one) => Array.isArray(one) && one.length === 2 && isLife(one[0]) && typeof one[1] === "string";
const stepOf = (text) => Number(/^\S+ (\d{1,15}) /.exec(text)?.[1]);

const areDistinct = (list) => new Set(list).size === list.length;

/** Whether nothing stands there twice, every release is paid for, and no state is from before the answers drawn with it. */
function fitsTogether({ spent, answers, streams }) {
  const visits = new Map(streams.map(([life]) => [life, 0]));
  let paid = 0;
  for (const [life] of streams) paid += costOf({ epsilon: life.split(" ")[0] });
  for (const [, , , terms] of answers) {
    if (!isLife(terms)) paid += terms;
    else if (visits.has(terms)) visits.set(terms, visits.get(terms) + 1);
    else return false;
  }
  return (
    paid === spent && areDistinct(streams.map(([life]) => life)) &&
    areDistinct(answers.map(([key, epoch]) => JSON.stringify([key, epoch]))) &&
    streams.every(([life, text]) => stepOf(text) >= visits.get(life))
  );
}

/** What is stored, if the mechanism can have released it. Whatever else it is, it is not shown, and not drawn again. */
function shown(mechanism, stored) {
  need(isReport(stored) && isAnswer(mechanism, stored.category), "budget", "a stored answer is damaged; nothing is released");
  return Object.freeze({ ...stored });
}

/** A state as it must be; anything else is damage, and is never taken for an empty budget. */
function sound(state, total) {
  const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
  const areAll = (list, check) => Array.isArray(list) && Array.from(list).every(check); // a hole is an entry, too
  const good = state && state.version === 2 && isCount(state.limit) && isCount(state.spent) && state.spent <= state.limit;
  need(good && areAll(state.answers, isEntry) && areAll(state.streams, isStream) && fitsTogether(state), "budget", DAMAGED);
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
    return fresh ? { version: 2, limit: total, spent: 0, answers: [], streams: [] } : sound(state, total);
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
  /** An entry on these terms; on others it would be of another ε than the mechanism of its key. */
  const entry = (state, key, epoch, terms) => {
    const known = state.answers.find((one) => one[0] === key && one[1] === epoch);
    need(!known || known[3] === terms, "budget", DAMAGED);
    return known;
  };

  /** `draw` is called at most once, after the charge is stored. */
  const ask = async (mechanism, epoch, draw) => {
    need(!mechanism.start, "call", "a stream is released by visit");
    need(typeof epoch === "string" && epoch, "budget", "an epoch is a text that is not empty");
    const cost = costOf(mechanism);
    const key = keyOf(mechanism);
    const stored = await within((state) => {
      const known = entry(state, key, epoch, cost);
      if (known) return known[2];
      need(state.spent + cost <= state.limit, "budget", "not enough is left; nothing was charged");
      state.spent += cost;
      state.answers.push([key, epoch, null, cost]);
      return null;
    });
    if (stored) return shown(mechanism, stored);
    const drawn = report(mechanism, draw());
    // Another tab may have been faster, or a crash may have left a charge without an answer: the first stored one counts.
    return within((state) => {
      const known = entry(state, key, epoch, cost);
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
    const life = lifeOf(stream);
    return within((state) => {
      const known = entry(state, key, epoch, life);
      if (known) return shown(stream, known[2]);
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
      state.answers.push([key, epoch, { ...made }, life]);
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
    room: (stream) => within(({ streams }) => {
      const own = streams.find((one) => one[0] === lifeOf(stream));
      return stream.room(own ? stream.fromText(own[1]) : stream.start());
    }),
    left: () => within((state) => (state.limit - state.spent) / 1e6),
  });
}
