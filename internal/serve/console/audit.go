package console

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

const (
	auditRows = 50
	// auditReach bounds how far back a search pages: further back, since narrows.
	auditReach = 5000
)

// An auditSearch is what the form of the search holds, and what came of it.
type auditSearch struct {
	Run, Agent, Cap, Decision, Since string
	Rows                             []auditRow
	Older                            string
	Newest                           string
	Reached                          bool // so many records are paged, and no more
}

// An auditRow is one record.
type auditRow struct {
	Seq, RunSeq                    uint64
	Time                           time.Time
	Run, Agent, Kind, What, Target string
	Decision, Reason, Layer        string
	Fields                         []field
}

// A field is one of a record, as it is exported.
type field struct{ Name, Value string }

func (c *console) auditPage(r *http.Request, caller *service.Caller) (*view, error) {
	q := r.URL.Query()
	s := auditSearch{
		Run: q.Get("run"), Agent: q.Get("agent"), Cap: q.Get("family"), Decision: q.Get("decision"),
		Since: q.Get("since"),
	}
	f, err := c.filter(&s)
	if err != nil {
		return nil, err
	}
	if s.Run != "" {
		if f.Run, err = c.runOf(r, caller, s.Run); errors.Is(err, service.ErrNotFound) {
			err = &badRequest{"there is no such run: run is the id of one, or the beginning or the end of it"}
		}
		if err != nil {
			return nil, err
		}
	}
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	skip := 0
	if cursor := q.Get("before"); cursor != "" {
		before, err := strconv.ParseUint(cursor, 10, 63)
		if err != nil {
			return nil, &badRequest{"before is the number of a record, such as 1200"}
		}
		if skip, err = newer(r.Context(), log, f, before); err != nil {
			return nil, err
		}
	}
	if err := s.read(r.Context(), log, f, skip); err != nil {
		return nil, err
	}
	q.Del("before")
	if len(q) > 0 {
		s.Newest = "/ui/audit?" + q.Encode()
	} else {
		s.Newest = "/ui/audit"
	}
	n := len(s.Rows)
	s.Reached = n == auditRows && skip+n >= auditReach
	if n == auditRows && !s.Reached {
		q.Set("before", strconv.FormatUint(s.Rows[n-1].Seq, 10))
		s.Older = "/ui/audit?" + q.Encode()
	}
	return &view{Page: "audit", Title: "Audit", Nav: "audit", Data: s}, nil
}

// newer counts the records that f asks for, from number before on.
func newer(ctx context.Context, log service.Log, f kb.Filter, before uint64) (int, error) {
	if before == 0 {
		return 0, nil
	}
	f.After, f.Limit = before-1, auditReach
	n := 0
	for _, err := range log.Lines(ctx, f.OfAgents()) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// read fills the rows, the newest first, after so many that are newer.
func (s *auditSearch) read(ctx context.Context, log service.Log, f kb.Filter, skip int) error {
	f.Limit = skip + auditRows
	for rec, err := range log.Audit(ctx, f.OfAgents()) {
		if err != nil {
			return err
		}
		s.Rows = append(s.Rows, rowOf(&rec))
	}
	s.Rows = s.Rows[:max(0, len(s.Rows)-skip)]
	s.Rows = s.Rows[max(0, len(s.Rows)-auditRows):]
	slices.Reverse(s.Rows)
	return nil
}

// filter reads the form; a field that could never match is an error.
func (c *console) filter(s *auditSearch) (kb.Filter, error) {
	f := kb.Filter{Run: s.Run, Agent: s.Agent, Decision: s.Decision}
	known := s.Cap == ""
	if !known {
		f.Cap, _, known = caps.AuditWord(s.Cap)
	}
	switch {
	case s.Agent != "" && !whole(s.Agent, nameLetter):
		return f, &badRequest{"agent is the name of an agent, such as notes_digest"}
	case !known:
		return f, &badRequest{"family is one, such as fs, or a capability, such as fs.write"}
	case s.Decision != "" && s.Decision != "allow" && s.Decision != "deny":
		return f, &badRequest{"decision is allow or deny"}
	}
	if s.Since != "" {
		at, ok := c.since(s.Since)
		if !ok {
			return f, &badRequest{"since is an age, such as 90m, 24h or 7d, or a time, such as 2026-01-02T15:04:05Z"}
		}
		f.SinceMS = at.UnixMilli()
	}
	return f, nil
}

func (c *console) since(text string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return c.Now().AddDate(0, 0, -n), err == nil && n > 0 && n < 100_000
	}
	age, err := time.ParseDuration(text)
	return c.Now().Add(-age), err == nil && age > 0
}

func rowOf(r *audit.Record) auditRow {
	row := auditRow{Seq: r.Seq, RunSeq: r.RunSeq, Time: r.Time, Run: r.Head.RunID, Agent: r.Head.Agent, Kind: r.Kind()}
	switch d, e := r.Decision, r.Event; {
	case d != nil:
		row.What, row.Target, row.Reason, row.Layer = d.Cap+" by "+d.Op, d.Target, d.Reason, d.Layer
		row.Decision = "allow"
		if d.Deny {
			row.Decision = "deny"
		}
	case e != nil:
		row.What, row.Target = eventText(e)
	}
	row.Fields = fieldsOf(r)
	return row
}

// eventText says what a record is about that is not a decision.
func eventText(e *audit.Event) (what, about string) {
	switch e.Kind {
	case audit.KindRunStart:
		return "run began", strings.Join(e.Effective, " ")
	case audit.KindCallDone:
		return e.Verb + " ended: " + e.Status, e.ErrorSummary
	case audit.KindCapsSwap:
		return "narrowed by " + e.Source, e.Label
	}
	return "run ended: " + e.Outcome, e.Message
}

// fieldsOf are the fields of a record as its exported line has them, in order.
func fieldsOf(r *audit.Record) []field {
	list := []field{
		{"seq", strconv.FormatUint(r.Seq, 10)},
		{"ts", r.Time.UTC().Format("2006-01-02T15:04:05.000Z")},
		{"run_id", r.Head.RunID},
		{"trace_id", r.Head.TraceID},
		{"parent_run", r.Head.ParentRun},
	}
	if d := r.Decision; d != nil {
		list = append(list, field{"severity", d.Severity.String()}, field{"tool", d.Tool}, field{"label", d.Label},
			field{"reason", d.Reason}, field{"layer", d.Layer},
			field{"args_hash", hex.EncodeToString(d.ArgsHash[:])})
	}
	if e := r.Event; e != nil {
		list = append(list, field{"reason", e.Reason}, field{"before", e.Before}, field{"after", e.After},
			field{"result_hash", e.ResultHash},
			field{"violations", strings.Join(e.Violations, "; ")}, field{"usage", counts(e.Usage)},
			field{"limits", counts(e.LimitsSummary)})
	}
	list = append(list, field{"bundle_digest", r.Head.BundleDigest}, field{"effective_digest", r.Head.EffectiveDigest})
	return slices.DeleteFunc(list, func(f field) bool { return f.Value == "" })
}

func counts(m map[string]int64) string {
	if len(m) == 0 {
		return ""
	}
	text, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(text)
}

// auditLink is a search for what one run was answered.
func auditLink(run string) string { return "/ui/audit?" + url.Values{"run": {run}}.Encode() }
