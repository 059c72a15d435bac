// Which pages there are, what they are called elsewhere, and the keys that lead to them.
import type { FunctionComponent } from "preact";
import type { Route } from "./route";
import { CallsPage } from "./pages/calls";
import { DeadPage } from "./pages/dead";
import { EventsPage } from "./pages/events";
import { FlowPage } from "./pages/flow";
import { LimitsPage } from "./pages/limits";
import { OverviewPage } from "./pages/overview";
import { QueuesPage } from "./pages/queues";
import { RunsPage } from "./pages/runs";
import { SchedulesPage } from "./pages/schedules";
import { WhatIfPage } from "./pages/whatif";

export interface Page {
  id: string;
  title: string;
  /** Pressed after `g`. */
  key: string;
  /** What users of other products call it. */
  alias?: string;
  View: FunctionComponent<{ route: Route }>;
}

export const PAGES: readonly Page[] = [
  { id: "overview", title: "Overview", key: "o", View: OverviewPage },
  { id: "limits", title: "Limits", key: "l", alias: "flow control", View: LimitsPage },
  { id: "flow", title: "Flow", key: "f", alias: "admissions", View: FlowPage },
  { id: "queues", title: "Queues", key: "q", alias: "lanes", View: QueuesPage },
  { id: "calls", title: "Calls", key: "c", alias: "logs", View: CallsPage },
  { id: "dead", title: "Dead", key: "d", alias: "DLQ", View: DeadPage },
  { id: "schedules", title: "Schedules", key: "s", alias: "cron", View: SchedulesPage },
  { id: "runs", title: "Runs", key: "r", alias: "workflows", View: RunsPage },
  { id: "whatif", title: "What if", key: "w", alias: "forecast", View: WhatIfPage },
  { id: "events", title: "Events", key: "e", alias: "live tail", View: EventsPage },
];
