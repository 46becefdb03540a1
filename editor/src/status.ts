/** The status bar: whether the server answers, and when the last message was stored. */

import * as vscode from "vscode";
import type { ApiError } from "./api";
import { problemText } from "./problems";
import { ago } from "./times";

const REFRESH_MS = 30_000;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("contextRegistry.status", vscode.StatusBarAlignment.Right, 50);
  private readonly timer = setInterval(() => this.show(), REFRESH_MS);
  private stored = "";
  private problem: string | undefined = vscode.l10n.t("Connecting to Context Registry");

  constructor(private readonly address: () => string) {
    this.item.name = "Context Registry";
    this.item.command = "contextRegistry.browse";
    this.show();
    this.item.show();
  }

  connected(): void {
    this.problem = undefined;
    this.show();
  }

  disconnected(error: ApiError): void {
    this.problem = problemText(error);
    this.show();
  }

  storedAt(time: string): void {
    if (time > this.stored) this.stored = time;
    this.show();
  }

  dispose(): void {
    clearInterval(this.timer);
    this.item.dispose();
  }

  private show(): void {
    const when = this.stored && ago(this.stored, vscode.env.language);
    this.item.text = this.problem ? "$(debug-disconnect) Registry" : `$(history) Registry${when ? ` · ${when}` : ""}`;
    this.item.tooltip = this.problem ?? this.connectedText(when);
    this.item.backgroundColor = this.problem ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  private connectedText(when: string): string {
    const where = vscode.l10n.t("Connected to {0}", this.address());
    return when ? `${where}\n${vscode.l10n.t("Last stored: {0}", when)}` : where;
  }
}
