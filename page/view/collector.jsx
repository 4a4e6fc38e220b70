/** The collector's live page: what the reports tell up to now. It asks /v1/estimate every two seconds. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Key, Row, percent, whole } from "./parts.jsx";

const tenths = (share) => (100 * share).toFixed(1);

function Group({ group, several }) {
  const most = 1.02 * Math.max(0.05, ...group.rows.map((row) => Math.max(row.high, row.prior)));
  return (
    <section>
      {several && <h2>{group.group}: {whole.format(group.reports)} reports</h2>}
      <p class="verdict">{group.verdict}</p>
      {group.rows.map((row) => (
        <Row
          key={row.category}
          name={String(row.category)}
          label={`${percent(row.share)}, interval ${percent(row.low)} to ${percent(row.high)}, prior ${percent(row.prior)}`}
          value={<>{percent(row.share)}<small>{tenths(row.low)} … {tenths(row.high)}</small></>}
          scale={(x) => x / most}
          marks={[
            { kind: "bar", from: 0, to: row.share },
            { kind: "interval", from: row.low, to: row.high },
            { kind: "tick", from: row.share },
            { kind: "public", from: row.prior },
          ]}
        />
      ))}
      {group.left_out > 0 && <p><small>and {whole.format(group.left_out)} smaller ones</small></p>}
      {group.note && <p><small>{group.note} Intervals: {100 * group.level} %.</small></p>}
    </section>
  );
}

function Collector() {
  const [shown, show] = useState(null);
  const [lost, setLost] = useState(false);
  useEffect(() => {
    let next;
    const refresh = async () => {
      try {
        const answer = await fetch("/v1/estimate", { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        show(await answer.json());
        setLost(false);
      } catch {
        setLost(true);
      }
      next = setTimeout(refresh, 2000);
    };
    refresh();
    return () => clearTimeout(next);
  }, []);
  const reports = shown?.reports ?? 0;
  const state = lost ? "the collector does not answer; asking again"
    : !shown ? "asking the collector"
    : reports ? `${shown.sampler} at ε = ${shown.epsilon}; refreshed every 2 seconds`
    : "waiting for the first report";
  return (
    <>
      <h1 class="soft">sottovoce collector</h1>
      <p id="reports" aria-live="polite">{shown ? `${whole.format(reports)} ${reports === 1 ? "report" : "reports"}` : "…"}</p>
      <p id="state" role="status" class={lost ? "bad" : "soft"}>{state}</p>
      <Key marks={{ bar: "estimated share", interval: "its interval", public: "the public prior" }} />
      <main>{shown?.groups.map((group) => <Group key={group.group} group={group} several={shown.groups.length > 1} />)}</main>
      <footer>
        Every report was made private on its user's device before it was sent. All that is shown here is computed from those
        reports alone (post-processing), so it costs nobody further privacy. The collector keeps no time, no user and no address.
      </footer>
    </>
  );
}

render(<Collector />, document.getElementById("page"));
