package auditlog

import (
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
)

// A Filter says which records are asked for, in the words of a person.
type Filter struct {
	Run, Agent, Family, Decision string
	Since                        string // a time or an age
	Limit                        int    // the last so many; 0: all
}

// At is the filter of the log, for ages counted from now.
func (f *Filter) At(now time.Time) (kb.Filter, error) {
	if f.Decision != "" && f.Decision != "allow" && f.Decision != "deny" {
		return kb.Filter{}, compose.Usagef("--decision %s: allow or deny", f.Decision)
	}
	if f.Limit < 0 {
		return kb.Filter{}, compose.Usagef("--limit %d: a whole number from 0 on", f.Limit)
	}
	since, err := Since(f.Since, now)
	if err != nil {
		return kb.Filter{}, err
	}
	capability, err := capOf(f.Family)
	if err != nil {
		return kb.Filter{}, err
	}
	return kb.Filter{Run: f.Run, Agent: f.Agent, Cap: capability, Decision: f.Decision, SinceMS: since, Limit: f.Limit},
		nil
}

// capOf is what records call a family or capability.
func capOf(family string) (string, error) {
	if family == "" {
		return "", nil
	}
	name, known, ok := caps.AuditWord(family)
	if !ok {
		return "", compose.Usagef("--family takes a family such as fs or kb_read, or one of %[2]s, not %[1]q", family, strings.Join(known, ", "))
	}
	return name, nil
}

// Since is the moment that a time or an age means, in milliseconds; "": 0.
func Since(text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UnixMilli(), nil
	}
	unit := text
	var days time.Duration
	if n, rest, ok := strings.Cut(text, "d"); ok && rest == "" {
		unit, days = n+"h", 24
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d < 0 {
		return 0, compose.Usagef("--since takes a time such as 2026-01-02T15:04:05Z or an age such as 90m, 24h or 7d, not %q", text)
	}
	if days > 0 {
		d *= days
	}
	return now.Add(-d).UnixMilli(), nil
}
