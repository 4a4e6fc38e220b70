/** The collector's live page: what the reports tell up to now. It asks /v1/estimate every two seconds. */
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Key, Row, percent, whole } from "./parts.jsx";

const tenths = (share) => (100 * share).toFixed(1);
const ENDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1];
const MOMENTS = 240;

/** The end of an axis that shows the prior, and what the reports are certain of; their noise does not move it. */
const endOf = (rows) => {
  const most = Math.max(0, ...rows.map((row) => 1.25 * Math.max(row.prior, row.low)));
  return ENDS.find((end) => end >= most) ?? 1;
};

function Group({ group, several }) {
  const end = useRef(0);
  end.current = Math.max(end.current, endOf(group.rows)); // it never shrinks: what moves is the reports
  return (
    <section>
      {several && <h2>{group.group}: {whole.format(group.reports)} reports</h2>}
      <p class="verdict">{group.verdict}</p>
      {group.rows.length > 0 && (
        <div class="row axis" aria-hidden="true">
          <div class="name" />
          <div class="ticks">{[0, 0.5, 1].map((part) => <span key={part}>{+(100 * part * end.current).toFixed(1)} %</span>)}</div>
          <div class="value" />
        </div>
      )}
      {group.rows.map((row) => {
        const stands = row.mark === "more" || row.mark === "fewer" ? row.mark : "";
        const note = stands && `, ${stands} than the prior`;
        return (
          <Row
            key={row.category}
            name={String(row.category)}
            label={`${percent(row.share)}, interval ${percent(row.low)} to ${percent(row.high)}, prior ${percent(row.prior)}${note}`}
            value={<>{percent(row.share)}<small>{tenths(row.low)} … {tenths(row.high)}</small><span class={`stands ${stands}`}>{stands}</span></>}
            scale={(x) => Math.min(x / end.current, 1)}
            marks={[
              { kind: "bar", from: 0, to: row.share },
              { kind: "interval", from: row.low, to: row.high },
              { kind: "tick", from: row.share },
              { kind: "public", from: row.prior },
            ]}
          />
        );
      })}
      {group.left_out > 0 && <p><small>and {whole.format(group.left_out)} smaller ones</small></p>}
      {group.note && <p><small>{group.note} Intervals: {100 * group.level} %. More, fewer: than the prior, all categories at once.</small></p>}
    </section>
  );
}

/** How many reports came while this page was open; the collector itself keeps no times. */
function Received({ moments }) {
  const [first, last] = [moments[0], moments.at(-1)];
  const more = last.reports - first.reports;
  const x = ({ time }) => (600 * (time - first.time)) / Math.max(60_000, last.time - first.time);
  const y = ({ reports }) => 58 - (54 * (reports - first.reports)) / Math.max(1, more);
  const line = moments.map((moment) => `${x(moment).toFixed(1)},${y(moment).toFixed(1)}`).join(" ");
  const text = `${whole.format(more)} since ${new Date(first.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}, when this page was opened`;
  return (
    <figure class="received">
      <svg viewBox="0 0 600 60" preserveAspectRatio="none" role="img" aria-label={text}>
        <polygon class="area" points={`0,60 ${line} ${x(last).toFixed(1)},60`} />
        <polyline class="curve" points={line} />
      </svg>
      <figcaption><small>{text}</small></figcaption>
    </figure>
  );
}

function Collector() {
  const [shown, show] = useState(null);
  const [state, setState] = useState("asking the collector");
  const [digest, choose] = useState("");
  const [key, setKey] = useState("");
  const [locked, lock] = useState(false);
  const moments = useRef([]);
  useEffect(() => {
    let next;
    moments.current = [];
    const refresh = async () => {
      try {
        const headers = key ? { authorization: `Bearer ${key}` } : {};
        const answer = await fetch(`/v1/estimate${digest && `?digest=${digest}`}`, { cache: "no-store", headers });
        lock(answer.status === 401);
        if (answer.status === 401) return setState(key ? "this key does not fit" : "the estimate needs a key");
        if (!answer.ok) throw new Error(String(answer.status));
        const estimate = await answer.json();
        moments.current.push({ time: Date.now(), reports: estimate.reports });
        if (moments.current.length > MOMENTS) moments.current = moments.current.filter((_, i) => i % 2 === 0);
        show(estimate);
        setState(estimate.reports ? `${estimate.sampler} at ε = ${estimate.epsilon}; refreshed every 2 seconds` : "waiting for the first report");
      } catch {
        setState("the collector does not answer; asking again");
      }
      next = setTimeout(refresh, 2000);
    };
    refresh();
    return () => clearTimeout(next);
  }, [digest, key]);
  const submit = (event) => {
    event.preventDefault();
    setKey(event.target.elements.key.value);
  };
  const reports = shown?.reports ?? 0;
  const bad = (locked && key) || state.startsWith("the collector does not");
  return (
    <>
      <h1 class="soft">sottovoce collector</h1>
      <p id="reports" aria-live="polite">{shown ? `${whole.format(reports)} ${reports === 1 ? "report" : "reports"}` : "…"}</p>
      <p id="state" role="status" class={bad ? "bad" : "soft"}>{state}</p>
      {locked && <form onSubmit={submit}><input type="password" name="key" aria-label="key" autocomplete="off" required /><button>show</button></form>}
      {shown?.mechanisms.length > 1 && (
        <label class="field"><span>mechanism file</span>
          <select value={shown.mechanism} onChange={(event) => choose(event.target.value)}>
            {shown.mechanisms.map((one) => <option key={one} value={one}>{one.slice(0, 12)}</option>)}
          </select>
        </label>
      )}
      {moments.current.length > 0 && <Received moments={moments.current} />}
      <Key marks={{ bar: shown?.groups.every((group) => group.unbiased ?? true) ? "estimated share" : "share of what was released", interval: "its interval", public: "the public prior" }} />
      <main>{shown?.groups.map((group) => <Group key={shown.mechanism + group.group} group={group} several={shown.groups.length > 1} />)}</main>
      <footer>
        Every report was made private on its user's device before it was sent. All that is shown here is computed from those
        reports alone (post-processing), so it costs nobody further privacy. The collector keeps no time, no user and no address.
      </footer>
    </>
  );
}

render(<Collector />, document.getElementById("page"));
