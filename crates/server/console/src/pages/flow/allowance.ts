// How much a rule lets through in so long: what a timeline of admissions is drawn against.
import type { Points, Rule } from "../../api/shapes";
import { spanOf } from "../../format";

export type RateRule = Exclude<Rule, { rule: "concurrency" }>;

export function isRate(rule: Rule): rule is RateRule {
  return rule.rule !== "concurrency";
}

/** What comes back in a second once the rule is spent. */
export function perSecondOf(rule: RateRule): number {
  return (rule.limit * 1000) / spanOf(rule.per);
}

/** Fewest steps that are added up. */
const STEPS_MIN = 60;

/** A time over which the rule is held to its word, and the most that it lets pass in any such time. */
export interface Window {
  lengthMs: number;
  steps: number;
  bound: number;
}

/**
 * So many whole periods of the rule that there are enough steps in them. A step less is added up: the server counts once a
 * step, and a count that comes a little late tells of a little more than its step.
 */
export function windowOf(rule: RateRule, stepMs: number): Window {
  const per = spanOf(rule.per);
  const periods = Math.max(1, Math.ceil((STEPS_MIN * stepMs) / per));
  const lengthMs = periods * per;
  const steps = Math.max(1, Math.floor(lengthMs / stepMs) - 1);
  return { lengthMs, steps, bound: boundOf(rule, periods) };
}

/** The most in so many periods, wherever they begin. */
function boundOf(rule: RateRule, periods: number): number {
  switch (rule.rule) {
    case "token_bucket":
      return (rule.burst ?? rule.limit) + rule.limit * periods;
    case "sliding_window":
      return rule.limit * periods;
    case "fixed_window":
      // They may begin within a window, and end within another.
      return rule.limit * (periods + 1);
  }
}

/** At each step what was let through in the last so many, that step included. */
export function trailing(values: Points, steps: number): Points {
  let sum = 0;
  return values.map((value, index) => {
    sum += value ?? 0;
    if (index >= steps) sum -= values[index - steps] ?? 0;
    return value === null ? null : sum;
  });
}
