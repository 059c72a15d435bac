// The one look at everything, taken once a second for the whole page: what is shown on top, and who looks.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { get } from "./api/client";
import type { Overview } from "./api/shapes";
import { useLive, type Live } from "./live";
import { setServerTime } from "./parts/time";

const EVERY_MS = 1_000;

/** Most meters, queues and lanes that the server tells of: there may be others. */
export const SEEN_MAX = 20;

export const Seen = createContext<Live<Overview>>({ data: undefined, error: undefined, refresh: () => {} });

export function useSeen(): Live<Overview> {
  return useContext(Seen);
}

export function useOverview(): Live<Overview> {
  return useLive(
    async (signal) => {
      const seen = await get<Overview>("/v1/overview", signal);
      setServerTime(seen.at);
      return seen;
    },
    EVERY_MS,
    [],
  );
}

/** Whether who looks may act: what they may not do is not shown. */
export function useMay(role: "enqueue" | "admin"): boolean {
  const roles = useSeen().data?.caller.roles ?? [];
  return roles.includes(role) || roles.includes("admin");
}
