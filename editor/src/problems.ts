/** Describe errors to the user, with the next step. */

import * as vscode from "vscode";
import { ApiError } from "./api";
import { HAS_PROGRAMS } from "./host";

/** Return true if no server answers at the address. */
export function isAway(error: unknown): boolean {
  return error instanceof ApiError && error.code === "UNREACHABLE";
}

export function problemText(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.code === "UNREACHABLE" && !HAS_PROGRAMS) {
    return vscode.l10n.t("Context Registry does not answer. In a browser it must allow this editor: CTXR_ALLOWED_ORIGINS={0}", globalThis.origin);
  }
  if (error.code === "UNREACHABLE") {
    return vscode.l10n.t("Context Registry does not answer. Start it with: ctxr up");
  }
  if (error.code === "UNAUTHORIZED") {
    return vscode.l10n.t("Context Registry asks for a token: `ctxr token create` makes one, the command Set Token takes it.");
  }
  return error.details ? `${error.message} ${error.details}` : error.message;
}

/** Run a command; show a failure with the step that fixes it. */
export async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const setToken = vscode.l10n.t("Set Token");
    const steps = error instanceof ApiError && error.code === "UNAUTHORIZED" ? [setToken] : [];
    const chosen = await vscode.window.showErrorMessage(problemText(error), ...steps);
    if (chosen === setToken) await vscode.commands.executeCommand("contextRegistry.setToken");
  }
}
