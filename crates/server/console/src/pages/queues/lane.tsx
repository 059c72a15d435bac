// One lane of a queue: how it stands, what blocks it, and what can be done about it.
import type { Lane } from "../../api/shapes";
import { count, counted } from "../../format";
import { useMay } from "../../overview";
import { Blocked } from "../../parts/blocked";
import { Panel } from "../../parts/page";
import { href } from "../../route";
import { pauseLane, resumeLane, weighLane } from "./actions";

interface Shown {
  queue: string;
  lane: Lane;
  refresh(): void;
}

export function LanePanel({ queue, lane, refresh }: Shown) {
  return (
    <Panel title={`Lane ${lane.name}`} aside={<LaneButtons queue={queue} lane={lane} refresh={refresh} />}>
      <dl class="facts inside">
        <div>
          <dt>Waiting</dt>
          <dd class="number">{counted(lane.waiting, "call")}</dd>
        </div>
        <div>
          <dt>In flight</dt>
          <dd class="number">{counted(lane.in_flight, "call")}</dd>
        </div>
        <div>
          <dt>Dead</dt>
          <dd class="number">{counted(lane.dead, "call")}</dd>
        </div>
        <div>
          <dt>Weight</dt>
          <dd class="number">× {count(lane.weight)}</dd>
        </div>
        <div class="wide">
          <dt>What blocks its first call</dt>
          <dd>{lane.head === undefined ? "nothing waits" : <Blocked call={lane.head} />}</dd>
        </div>
      </dl>
    </Panel>
  );
}

export function LaneButtons({ queue, lane, refresh }: Shown) {
  const isAdmin = useMay("admin");
  return (
    <span class="buttons row-buttons">
      <a class="button" href={href("flow", [], { queue, lane: lane.name })}>
        Flow
      </a>
      <a class="button" href={href("calls", [], { queue, lane: lane.name })}>
        Calls
      </a>
      {isAdmin && (
        <>
          {lane.paused || lane.held ? (
            <button type="button" onClick={() => resumeLane(queue, lane, refresh)}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => pauseLane(queue, lane, refresh)}>
              Pause
            </button>
          )}
          <button type="button" onClick={() => weighLane(queue, lane, refresh)}>
            Weigh
          </button>
        </>
      )}
    </span>
  );
}
