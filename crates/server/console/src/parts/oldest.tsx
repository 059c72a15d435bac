// The call of a queue that has been in line longest.
import type { BusyQueue } from "../api/shapes";
import { span } from "../format";
import { useSeen } from "../overview";
import { href } from "../route";

/** Of the queues with most calls that wait, which the overview has. */
export function OldestOf({ queue }: { queue: string }) {
  const seen = useSeen().data?.queues.find((one) => one.queue === queue);
  return seen ? <Oldest of={seen} /> : <span class="soft">not known</span>;
}

export function Oldest({ of }: { of: BusyQueue }) {
  if (of.oldest === undefined) return <span class="soft">none</span>;
  const text = of.oldest_ms === undefined ? "since before the restart" : span(of.oldest_ms);
  return (
    <a href={href("calls", [of.oldest])} title={`call ${of.oldest} has been in line longest`}>
      {text}
    </a>
  );
}
