package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// On a terminal records are shown by a pager, in lines of a page.
func TestRecordsOnATerminalFitAPage(t *testing.T) {
	_, tty := ownTerminal(t)
	shown := filepath.Join(t.TempDir(), "shown")
	a := &app{environment: environment{
		env: []string{"PAGER=cat >" + shown, "PATH=" + os.Getenv("PATH")}, stdout: tty, stderr: os.Stderr,
	}}
	long := "/" + strings.Repeat("folder/", 40) + "name"
	head := audit.Head{RunID: "0198d2c4-7f1e-7000-8000-6d0c3f0a1b2c", Agent: "notes_digest"}
	records := func(yield func(audit.Record, error) bool) {
		for i, r := range []audit.Record{
			{Decision: &audit.DecisionRecord{Cap: "fs.read", Op: "path_open", Target: long, Reason: "granted"}},
			{Decision: &audit.DecisionRecord{
				Cap: "fs.read", Op: "path_open", Target: long, Deny: true, Severity: audit.Warn, Reason: "path_not_permitted",
				Layer: "override:" + long,
			}},
			{Decision: &audit.DecisionRecord{Cap: "time.now", Op: "clock_time_get", Deny: true, Reason: "cap_missing"}},
			{Event: &audit.Event{Kind: audit.KindCallDone, Verb: "kb_get", Status: "error", ErrorSummary: long}},
		} {
			r.Head, r.Seq, r.Time = head, uint64(i+1), time.Unix(1700000000, 0)
			if !yield(r, nil) {
				return
			}
		}
	}
	if err := printRecords(a, records, kb.Filter{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(shown)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, want := range []string{"3f0a1b2c", "name", "path_not_permitted", "note  time.now"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("nothing of %q in\n%s", want, text)
		}
	}
	for _, line := range lines {
		plain := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(line)
		if n := utf8.RuneCountInString(plain); n > pageWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if len(lines) != 4 || a.stdout != tty {
		t.Errorf("%d lines, and stdout is %v", len(lines), a.stdout)
	}
}
