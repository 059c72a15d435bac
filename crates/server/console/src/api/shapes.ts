// What the API answers, as openapi.json says it; only what the console shows.

export type Instant = string;

export type Rule =
  | { rule: "token_bucket"; limit: number; per: string; burst?: number; guard?: string }
  | { rule: "fixed_window"; limit: number; per: string; align?: string; guard?: string }
  | { rule: "sliding_window"; limit: number; per: string; guard?: string }
  | { rule: "concurrency"; limit: number };

export type Definition = (Rule & Shared) | ({ rules: Rule[] } & Shared);

/** What is said of a limit that servers share. */
export interface Shared {
  ahead?: string;
  spread?: boolean;
}

export interface Tally {
  count: number;
  weight: number;
}

export interface LimitLine {
  name: string;
  definition: Definition;
  pinned?: Definition;
}

export interface LimitPage {
  limits: LimitLine[];
  next?: string;
}

export interface LimitState extends LimitLine {
  overrides: { partition: string; definition: Definition }[];
  overrides_count: number;
  totals?: { admitted: Tally; refused: Tally; waited_ms: number };
  paused?: boolean;
}

export interface Meter {
  name: string;
  partition?: string;
  definition: Definition;
  limit: number;
  available: number;
  in_flight: number;
  waiting: number;
  next_admission_ms?: number;
  reset_after_ms: number;
  closed_for_ms?: number;
  closed_reason?: string;
  admitted?: Tally;
  paused?: boolean;
}

export interface MeterPage {
  global: Meter;
  partitions: Meter[];
  next?: string;
}

export interface Change {
  at: Instant;
  who: string;
  kind: "limit" | "pin" | "override" | "meter" | "queue" | "lane";
  name: string;
  partition?: string;
  lane?: string;
  /** What an operator did, where nothing was defined. */
  action?: "pause" | "resume" | "close" | "reopen" | "reset";
  for_ms?: number;
  reason?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
}

export interface ChangePage {
  changes: Change[];
  next?: string;
}

export interface QueueDefinition {
  order: "strict" | { parallel: number };
  lease: string;
  failures_max: number;
  on_dead: "skip" | "hold";
  depth_max: number;
  tolls: { limit: string }[];
  destination?: { url?: string; method?: string };
}

export interface QueueState {
  name: string;
  definition: QueueDefinition;
  paused: boolean;
  waiting: number;
  in_flight: number;
  dead: number;
  lanes: number;
  asking: number;
}

export interface QueuePage {
  queues: QueueState[];
  next?: string;
}

export interface Lane {
  name: string;
  waiting: number;
  in_flight: number;
  dead: number;
  paused: boolean;
  held: boolean;
  weight: number;
  head?: string;
}

export interface LanePage {
  lanes: Lane[];
  next?: string;
}

export interface Toll {
  limit: string;
  partition?: string;
  weight?: number;
}

export type CallState = "waiting" | "not_due" | "resting" | "in_flight" | "dead";
export type End = "done" | "dead" | "cancelled" | "expired" | "superseded" | "dropped";

export interface CallView {
  id: string;
  queue: string;
  lane: string;
  state: CallState;
  priority: number;
  tolls: Toll[];
  attempts: { failures: number; crashes: number; limited: number };
  not_before?: Instant;
  expires_at?: Instant;
  rests_until?: Instant;
  lease_expires_at?: Instant;
  died_at?: Instant;
  died_of?: "failed" | "crashed" | "limited" | "given_up";
}

export interface CallPage {
  calls: CallView[];
  next?: string;
}

export type Reason =
  | { reason: "in_flight"; lease_expires_at: Instant }
  | { reason: "not_due" | "resting"; until: Instant }
  | { reason: "lane_busy"; in_flight: number }
  | { reason: "behind"; calls: number }
  | { reason: "meter"; limit: string; partition?: string; cause: Cause; opens_at?: Instant }
  | { reason: "queue_paused" | "lane_paused" | "lane_held" | "no_worker" | "other" };

export type Cause = "spent" | "slots" | "closed" | "turn" | "impossible" | "missing" | "paused" | "other";

export interface Explanation {
  position?: number;
  reasons: Reason[];
  not_before?: Instant;
  expected?: Instant;
}

/** A call that lives, whole; or one that ended, with little but its history. */
export interface Call extends Partial<Omit<CallView, "state">> {
  id: string;
  queue: string;
  lane: string;
  state: CallState | End;
  body?: unknown;
  body_base64?: string;
  body_bytes?: number;
  destination?: unknown;
  traceparent?: string;
  waiting?: Explanation;
  history: CallEvent[];
}

export type EventKind = "enqueued" | "unknown" | "throttled" | "started" | "settled" | "ended" | "revived";

export interface CallEvent {
  at: Instant;
  call: string;
  queue: string;
  lane: string;
  event: EventKind;
  limit?: string;
  partition?: string;
  wanted?: number;
  granted?: number;
  attempt?: number;
  attempts?: number;
  started?: Instant;
  waits?: Record<string, string>;
  outcome?: string;
  until?: Instant;
  end?: End;
  report?: unknown;
  report_base64?: string;
  report_bytes?: number;
}

export interface HistoryPage {
  events: CallEvent[];
  next?: string;
}

/** A line of QStash's log. */
export interface MessageLine {
  time: number;
  state: string;
  messageId: string;
  url: string;
  method: string;
  labels?: string[];
  flowControlKey?: string;
  responseStatus?: number;
  error?: string;
}

export interface MessageLog {
  logs: MessageLine[];
  cursor?: string;
}

export interface Schedule {
  name: string;
  queue: string;
  cron?: string;
  zone?: string;
  at?: Instant;
  call: { lane?: string; [field: string]: unknown };
  paused: boolean;
  next?: Instant;
  last?: Instant;
  problem?: string;
}

export interface SchedulePage {
  schedules: Schedule[];
  next?: string;
}

export type TaskState = "waiting" | "running" | "done" | "skipped" | "failed" | "cancelled";

export interface Run {
  run: string;
  name: string;
  version: number;
  correlation?: string;
  began_at: Instant;
  state: "going" | "awaiting" | "joining" | "working" | "ended";
  step?: string;
  call?: string;
  names?: string[];
  children?: number;
  tasks?: { task: string; state: TaskState }[];
  pending?: boolean;
  ended_at?: Instant;
  ending?: {
    outcome: "done" | "failed" | "cancelled";
    value?: unknown;
    reason?: string;
    step?: string;
    given?: unknown;
  };
}

export interface RunPage {
  runs: Run[];
  next?: string;
}

export interface StepAttempt {
  step?: string;
  attempt: number;
  outcome?: string;
  started_at: Instant;
  settled_at: Instant;
  waits?: Record<string, string>;
  settlement: string;
  call: string;
}

export interface WorkflowPage {
  workflows: { name: string; version: number; definition: { tasks: { name: string; type: string }[] } }[];
  next?: string;
}

export interface BusyQueue {
  queue: string;
  waiting: number;
  in_flight: number;
  dead: number;
  asking: number;
  paused: boolean;
  /** The call that has been in line longest, and for how long; not known of one from before a restart. */
  oldest?: string;
  oldest_ms?: number;
}

export interface Overview {
  at: Instant;
  version: string;
  store: string;
  ready: boolean;
  uptime_ms: number;
  caller: { name?: string | null; roles: string[]; namespace?: string | null };
  waiting: number;
  in_flight: number;
  dead: number;
  asking: number;
  limits: Bite[];
  queues: BusyQueue[];
  lanes: (Omit<Lane, "name" | "head"> & { queue: string; lane: string })[];
}

/** A meter that holds something back. */
export interface Bite {
  limit: string;
  partition?: string;
  waiting: number;
  in_flight: number;
  available: number;
  next_admission_ms?: number;
  closed_for_ms?: number;
  closed_reason?: string;
  paused: boolean;
}

/** A value for each step, the oldest first; null where nothing is known. */
export type Points = (number | null)[];

export interface Series {
  step_ms: number;
  until: Instant;
  admitted?: Points;
  weight?: Points;
  throttled?: Points;
  enqueued?: Points;
  started?: Points;
  done?: Points;
  failed?: Points;
  died?: Points;
  waiting?: Points;
  in_flight?: Points;
  dead?: Points;
}

export interface Forecast {
  waiting: number;
  started: number;
  cut?: boolean;
  last_ms: number;
  step_ms: number;
  starts: number[];
  lanes: LaneForecast[];
  lanes_count: number;
}

export interface LaneForecast {
  queue: string;
  lane: string;
  waiting: number;
  started: number;
  first_ms?: number;
  last_ms?: number;
}

export interface Outlook {
  now: Forecast;
  then?: Forecast;
}
