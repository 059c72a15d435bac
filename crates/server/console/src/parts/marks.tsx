// Small marks: a state in a word, how much of something is used, a number with its unit.
import type { ComponentChildren } from "preact";
import type { Meter } from "../api/shapes";
import { capacityOf, count, counted } from "../format";

export type Tone = "pass" | "wait" | "stop" | "flight" | "plain";

export function Mark({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`mark ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** From here on a bar warns. */
const NEARLY_USED = 0.8;

/** How much is left of how much, by the tightest rule; debt shows as a bar that is full and red. */
export function Usage({ meter }: { meter: Meter }) {
  const { available } = meter;
  const { of, unit } = capacityOf(meter);
  const used = of === 0 ? 1 : Math.min(1, Math.max(0, (of - available) / of));
  const shade: Tone = available < 0 ? "stop" : used > NEARLY_USED ? "wait" : "pass";
  const text = `${count(available)} of ${counted(of, unit)} left`;
  return (
    <span class="usage" title={text}>
      <span class="usage-text number">
        {count(available)} <small>of {counted(of, unit)} left</small>
      </span>
      <span
        class="usage-bar"
        role="meter"
        aria-label="used"
        aria-valuemin={0}
        aria-valuemax={of}
        aria-valuenow={Math.round(used * of)}
        aria-valuetext={text}
      >
        <span class={`usage-fill ${shade}`} style={{ width: `${used * 100}%` }} />
      </span>
    </span>
  );
}

export function Stat(props: {
  label: string;
  value: string;
  unit: string;
  tone: Tone;
  trend?: number[];
  href?: string;
}) {
  const { label, value, unit, tone, trend, href } = props;
  const inside = (
    <>
      <span class="stat-label">{label}</span>
      <span class="stat-value number">
        {value} <small>{unit}</small>
      </span>
      {trend && <Spark values={trend} />}
    </>
  );
  return href ? (
    <a class={`stat ${tone}`} href={href}>
      {inside}
    </a>
  ) : (
    <div class={`stat ${tone}`}>{inside}</div>
  );
}

const SPARK_WIDTH = 120;
const SPARK_HEIGHT = 28;

/** The last minutes at a glance. */
function Spark({ values }: { values: number[] }) {
  const most = Math.max(1, ...values);
  const step = SPARK_WIDTH / Math.max(1, values.length - 1);
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(SPARK_HEIGHT - 1 - (value / most) * (SPARK_HEIGHT - 3)).toFixed(1)}`,
  );
  return (
    <svg class="spark" viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${SPARK_HEIGHT} ${points.join(" ")} ${SPARK_WIDTH},${SPARK_HEIGHT}`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
