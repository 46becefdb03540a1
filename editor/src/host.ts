/** Where the extension runs: on a machine, where programs can be started, or in a browser. */

export const HAS_PROGRAMS = typeof process === "object" && Boolean(process.versions?.node);
