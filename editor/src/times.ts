/** Times as people say them. */

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** How long ago, such as "3 hr. ago"; empty for what is no time. */
export function ago(time: string, language: string, now = Date.now()): string {
  const seconds = (now - Date.parse(time)) / 1_000;
  if (Number.isNaN(seconds)) return "";
  const words = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  const step = STEPS.find(([, size]) => seconds >= size);
  return step ? words.format(-Math.floor(seconds / step[1]), step[0]) : words.format(0, "second");
}
