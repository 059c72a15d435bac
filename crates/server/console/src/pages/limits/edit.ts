// A limit's rules as a form, and the form as rules.
import type { Definition, Rule } from "../../api/shapes";
import type { Field, Values } from "../../parts/fields";
import { definitionInWords, rulesOf } from "../../format";

const KINDS = [
  { value: "token_bucket", label: "Token bucket: refilled evenly, so much at once" },
  { value: "sliding_window", label: "Sliding window: so much in any interval" },
  { value: "fixed_window", label: "Fixed window: so much in each window" },
  { value: "concurrency", label: "Concurrency: so many at a time" },
  { value: "json", label: "Several rules, as JSON" },
];

const isRate = (values: Values) => values.kind !== "concurrency" && values.kind !== "json";

/** The fields, filled with what is defined. */
export function fieldsOf(definition?: Definition): Field[] {
  const { first, slots, isSimple } = parted(definition);
  const rate = first && first.rule !== "concurrency" ? first : undefined;
  const text = (value: string | number | undefined) => (value === undefined ? "" : String(value));
  return [
    {
      name: "kind",
      label: "Rule",
      kind: "choice",
      choices: KINDS,
      value: isSimple ? (first?.rule ?? "token_bucket") : "json",
    },
    {
      name: "limit",
      label: "Limit, in units",
      kind: "number",
      value: text(first?.limit ?? 100),
      when: (values) => values.kind !== "json",
    },
    { name: "per", label: "Per", value: rate?.per ?? "1m", hint: "250ms, 10s, 5m, 1h30m, 1d", when: isRate },
    {
      name: "burst",
      label: "Burst, in units",
      kind: "number",
      value: text(rate?.rule === "token_bucket" ? rate.burst : undefined),
      isOptional: true,
      hint: "How much may go at once; the limit if empty",
      when: (values) => values.kind === "token_bucket",
    },
    {
      name: "align",
      label: "Calendar of",
      value: text(rate?.rule === "fixed_window" ? rate.align : undefined),
      isOptional: true,
      hint: "A time zone, as in Europe/Berlin: windows open on its calendar. Empty: at the first call",
      when: (values) => values.kind === "fixed_window",
    },
    {
      name: "guard",
      label: "Guard",
      value: text(rate?.guard),
      isOptional: true,
      hint: "How much jitter the upstream's window is kept whole in spite of, as in 50ms",
      when: isRate,
    },
    {
      name: "slots",
      label: "And so many at a time",
      kind: "number",
      value: text(slots?.limit),
      isOptional: true,
      when: isRate,
    },
    {
      name: "json",
      label: "Definition",
      kind: "lines",
      value: JSON.stringify(definition ?? { rules: [] }, null, 2),
      when: (values) => values.kind === "json",
    },
  ];
}

/** The definition that the form says. Throws what is wrong with it. */
export function definitionOf(values: Values): Definition {
  if (values.kind === "json") return JSON.parse(values.json ?? "") as Definition;
  const first = ruleOf(values);
  if (!values.slots || first.rule === "concurrency") return first;
  return { rules: [first, { rule: "concurrency", limit: whole(values.slots, "so many at a time") }] };
}

/** The same in words, or what becomes of it, while it is being written. */
export function saidIn(values: Values, become = (definition: Definition) => definition): string {
  try {
    return definitionInWords(become(definitionOf(values)));
  } catch {
    return "what the form says";
  }
}

function ruleOf(values: Values): Rule {
  const limit = whole(values.limit, "the limit");
  const per = values.per?.trim() ?? "";
  const guard = values.guard ? { guard: values.guard.trim() } : {};
  switch (values.kind) {
    case "concurrency":
      return { rule: "concurrency", limit };
    case "fixed_window":
      return { rule: "fixed_window", limit, per, ...(values.align ? { align: values.align.trim() } : {}), ...guard };
    case "sliding_window":
      return { rule: "sliding_window", limit, per, ...guard };
    default:
      return {
        rule: "token_bucket",
        limit,
        per,
        ...(values.burst ? { burst: whole(values.burst, "the burst") } : {}),
        ...guard,
      };
  }
}

function whole(text: string | undefined, what: string): number {
  const value = Number(text?.replaceAll(/[,_ ]/g, ""));
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${what} is a whole number from 1 on`);
  return value;
}

/** One rule, and perhaps slots beside it: what the form can say. */
function parted(definition?: Definition): { first?: Rule; slots?: Rule; isSimple: boolean } {
  if (!definition) return { isSimple: true };
  const rules = rulesOf(definition);
  const [slots] = rules.length > 1 ? rules.filter((rule) => rule.rule === "concurrency") : [];
  const [first, ...others] = rules.filter((rule) => rule !== slots);
  const isSimple = others.length === 0 && first !== undefined && !definition.ahead && !definition.spread;
  return { ...(first ? { first } : {}), ...(slots ? { slots } : {}), isSimple };
}
