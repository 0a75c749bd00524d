package ask

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/audit"
)

// What untrusted content took is what the floor takes of what the run held.
func TestWhatUntrustedContentTook(t *testing.T) {
	start := &audit.Event{
		Kind:      audit.KindRunStart,
		Effective: []string{"fs:read:/notes", "kb:write:drafts", "process:exec:/usr/bin/grep"},
		Floor:     &audit.Layer{Name: policy.Untrusted, File: "built in"},
	}
	swap := &audit.Event{Kind: audit.KindCapsSwap, Source: policy.Untrusted, Label: "http:https://evil.example/page"}
	n, err := Marked(start, swap)
	if err != nil || n == nil || n.Cause != swap.Label || n.Trust != `trusted_hosts = ["evil.example"]` {
		t.Fatalf("%+v, %v", n, err)
	}
	if slices.Sort(n.Taken); !slices.Equal(n.Taken, []string{"kb:write:drafts", "process:exec:/usr/bin/grep"}) {
		t.Errorf("taken is %q", n.Taken)
	}
	start.Floor = nil // control: a run that nothing can mark has none
	if n, err = Marked(start, swap); err != nil || len(n.Taken) != 0 {
		t.Errorf("without a floor: %q, %v", n.Taken, err)
	}
	swap.Source = "override:notes.toml" // which was edited meanwhile
	if n, err = Marked(start, swap); err != nil || n != nil {
		t.Errorf("an edit is told as untrusted content: %+v, %v", n, err)
	}
}

// The setting that is named for a host is one that is read, and trusts that host.
func TestWhichSettingTrusts(t *testing.T) {
	for cause, want := range map[string]string{
		"http:https://api.example.com/a?b":      `trusted_hosts = ["api.example.com"]`,
		"http:https://api.example.com:8443/":    `trusted_hosts = ["api.example.com:8443"]`,
		"http:https://api.example.com:443/":     `trusted_hosts = ["api.example.com"]`,
		"http:http://127.0.0.1:9191/x":          `trusted_hosts = ["http://127.0.0.1:9191"]`,
		"http:https://ex\u202eample.com]\"/\n/": "", "http:": "", "kb:drafts/x": "", "mcp:github/list": "", "input": "",
		"fs:/home/me/downloads/a": "", "agents:critic": "",
	} {
		setting, how := Trust(cause)
		if setting != want || how == "" {
			t.Errorf("%s: %q, %q", cause, setting, how)
		}
		if setting == "" {
			continue
		}
		host := strings.TrimSuffix(strings.TrimPrefix(setting, `trusted_hosts = ["`), `"]`)
		if _, err := caps.ParseTrustedHost(host); err != nil {
			t.Errorf("%s is no trusted host: %v", host, err)
		}
	}
}
