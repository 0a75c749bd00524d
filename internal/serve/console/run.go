package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/runs"
)

// recordsAPage is how many records of a run one page reads at most: many of them are
// one row.
const recordsAPage = 1000

// shownRun is the page of a run.
type shownRun struct {
	runRow
	TraceID    string
	Digest     string
	Effective  []string
	More       int // grants that are not listed
	Rows       []row
	Denials    []row // the most frequent first
	MoreDenied int
	Noise      int // calls of the language's own start, which are no rows
	Axis       []int64
	Marks      []mark
	Only       string // "denied", or all
	Next       string
	First      string
	LastSeq    uint64 // run_seq, from which a live page goes on
	Printed    *launcher.Report
	Result     string
	Lane       string
	CanCancel  bool
	Records    string // the search for all of them
	Again      string // the form that launches it again
	Installed  bool
}

func (c *console) runPage(r *http.Request, caller *service.Caller) (*view, error) {
	id, err := c.runOf(r, caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d := &shownRun{runRow: runRow{ID: id}, Only: r.URL.Query().Get("show"), Records: auditLink(id), First: runLink(id)}
	if d.Only != "" && d.Only != "denied" {
		return nil, &badRequest{"show is denied, or is left out"}
	}
	after, err := cursor(r.URL.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	live, err := c.Runs.Run(r.Context(), caller, id)
	if err != nil && !errors.Is(err, service.ErrNotFound) {
		return nil, err
	}
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	found, err := d.read(r.Context(), log, after)
	if err != nil {
		return nil, err
	}
	if live != nil {
		d.take(live, caller)
	} else if !found {
		return nil, service.ErrNotFound
	}
	d.CanCancel = d.Under() && live != nil && caller.Can(service.Launch)
	if _, err := c.bundle(r.Context(), caller, d.Agent); err == nil {
		d.Installed = true
		if !d.Under() && caller.Can(service.Launch) {
			d.Again = launchLink(d.Agent) + "?again=" + id
		}
	}
	return &view{Page: "run", Title: d.Agent + " " + shortID(id), Nav: "runs", Data: d}, nil
}

// runOf is the run that text means: its id, or the beginning or the end of one.
func (c *console) runOf(r *http.Request, caller *service.Caller, text string) (string, error) {
	text = strings.TrimPrefix(text, "…") // as pages print an end
	if text == "" || !whole(text, lowerHex) || len(text) > ask.WholeID {
		return "", service.ErrNotFound
	}
	id, err := service.WholeRun(r.Context(), c.Runs, c.Host, caller, text)
	var several service.FieldErrors
	if errors.As(err, &several) {
		return "", &badRequest{several[0].Why}
	}
	return id, err
}

func cursor(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, &badRequest{"after is the number of a record, such as 1200"}
	}
	return n, nil
}

// read reads the first record, the last one, and the page of those after seq.
func (d *shownRun) read(ctx context.Context, log service.Log, after uint64) (bool, error) {
	first, err := one(ctx, log, kb.Filter{Run: d.ID})
	if err != nil || first == nil {
		return false, err
	}
	last, err := one(ctx, log, kb.Filter{Run: d.ID, Limit: 1})
	if err != nil || last == nil {
		return false, err
	}
	d.began(first)
	d.ended(last)
	f := kb.Filter{Run: d.ID, After: after}
	if d.Only == "denied" {
		f.Decision = "deny"
	}
	t := timeline{
		from: d.Began, span: max(d.Took, 1), grants: runs.Grants(d.Effective), run: d.ID, index: map[string]int{},
	}
	n := 0
	for rec, err := range log.Audit(ctx, f.OfAgents()) {
		if err != nil {
			return false, err
		}
		if n++; n > recordsAPage || t.full() {
			d.Next = d.First + "?after=" + strconv.FormatUint(t.last, 10)
			if d.Only != "" {
				d.Next += "&show=" + d.Only
			}
			break
		}
		d.marked(first, &rec)
		t.add(&rec)
	}
	d.fall(&t)
	d.Effective, d.More = clip(d.Effective, mostGrants)
	return true, nil
}

// mostDenials bounds how many denials stand above the calls.
const mostDenials = 5

// fall takes in the rows, and what of them was denied.
func (d *shownRun) fall(t *timeline) {
	d.Rows, d.Noise = t.waterfall(), t.noise
	for q := range int64(5) {
		d.Axis = append(d.Axis, t.span*q/4)
	}
	for _, k := range d.Rows {
		if k.Word == "denied" && d.Only == "" {
			d.Denials = append(d.Denials, k)
		}
	}
	slices.SortStableFunc(d.Denials, func(a, b row) int { return cmp.Compare(b.Times, a.Times) })
	d.Denials, d.MoreDenied = clip(d.Denials, mostDenials)
	for i := range d.Marks {
		for _, k := range d.Rows {
			if k.Word == "denied" && k.Reason == untrusted {
				d.Marks[i].Denied += k.Times
			}
		}
	}
}

// untrusted is the reason of what is denied once a run has taken in untrusted content.
const untrusted = "untrusted_context"

// A mark is untrusted content that came in, and narrowed the run.
type mark struct {
	*ask.Mark
	At     int64 // ms since the run began
	Time   time.Time
	Denied int  // calls since, of this page
	More   int  // of what it took that is not listed
	Unread bool // what it took cannot be read from the records
}

// marked notes that a record says so.
func (d *shownRun) marked(first, r *audit.Record) {
	if first.Event == nil || r.Event == nil {
		return
	}
	m, err := ask.Marked(first.Event, r.Event)
	if m == nil {
		return
	}
	at := mark{Mark: m, At: since(d.Began, r.Time), Time: r.Time, Unread: err != nil}
	at.Taken, at.More = clip(m.Taken, mostTaken)
	d.Marks = append(d.Marks, at)
}

// mostTaken bounds how much of what untrusted content took a page lists.
const mostTaken = 12

// mostGrants bounds how many grants a page lists.
const mostGrants = 40

func one(ctx context.Context, log service.Log, f kb.Filter) (*audit.Record, error) {
	for rec, err := range log.Audit(ctx, f) {
		if err != nil {
			return nil, err
		}
		return &rec, nil
	}
	return nil, nil
}

func (d *shownRun) began(r *audit.Record) {
	d.Agent, d.TraceID, d.Parent, d.Digest, d.Began, d.State = r.Head.Agent, r.Head.TraceID, r.Head.ParentRun,
		r.Head.BundleDigest, r.Time.UTC(), "running"
	if e := r.Event; e != nil && e.Kind == audit.KindRunStart {
		d.Effective = e.Effective
	}
}

func (d *shownRun) ended(r *audit.Record) {
	d.LastSeq = r.RunSeq
	d.Took = r.Time.Sub(d.Began).Milliseconds()
	e := r.Event
	if e == nil || !audit.Ends(e.Kind) {
		return
	}
	d.State, d.Outcome, d.ExitCode, d.Message = runs.EndState(e.Kind, e.Outcome), e.Outcome, e.ExitCode, e.Message
	d.Allowed, d.Denied = e.Usage["allowed"], e.Usage["denied"]
	if w := e.Usage["wall_ms"]; w > d.Took {
		d.Took = w
	}
}

// take adds what only the service knows: who asked, and what was printed.
func (d *shownRun) take(run *service.Run, caller *service.Caller) {
	s := run.StateFor(caller)
	row := rowOfState(&s)
	if d.Agent == "" || row.Under() {
		seen := d.runRow
		d.runRow = row
		if !seen.Began.IsZero() {
			d.Began = seen.Began
		}
	}
	d.Caller = row.Caller
	if d.Outcome == "" {
		d.State, d.Outcome, d.Message = row.State, row.Outcome, row.Message
	}
	select {
	case <-run.Done():
	default:
		return
	}
	report, err := run.Report(caller)
	if err != nil || report == nil {
		return
	}
	d.Printed, d.Result = report, string(indented(report.Result))
	if report.Lane != nil {
		d.Lane = report.Lane.Name
	}
}

func (c *console) cancelRun(r *http.Request, caller *service.Caller) (*view, error) {
	id, err := c.runOf(r, caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := c.Runs.Cancel(r.Context(), caller, id); err != nil {
		return nil, err
	}
	return &view{Goto: runLink(id)}, nil
}
