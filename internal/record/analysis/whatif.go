package analysis

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A Record is one decision that is decided again: its run, its number in the
// log, and what it says.
type Record struct {
	Run         string
	Seq, RunSeq uint64
	Decision
}

// A Verdict says what another policy would have made of a decision.
type Verdict uint8

// The verdicts.
const (
	Stays   Verdict = iota // allowed, and would be
	Blocked                // allowed, and would be refused
	Depends                // allowed, and the record does not say enough
	Denied                 // denied: a policy that narrows leaves it so
	NoAsk                  // no request: what the runtime noted of its own
)

// A Replay decides recorded decisions again under layers that narrow.
//
// What a run was allowed was allowed by all that narrowed it then; under one
// layer more it is what that layer allows as well, and nothing else.
type Replay struct {
	layer  caps.Set // all there is, narrowed by the candidates
	runs   map[string]*running
	last   *running
	memo   map[string]answer
	key    []byte
	counts [NoAsk + 1]int64
	blocks map[string]*Block
	more   int64 // requests that there was no room for
	passed []Passed
}

type running struct {
	id      string
	reader  Reader
	held    caps.Set
	blocked bool
	begun   bool
	allowed int64 // calls that are in the record
	missing int64 // and such as are not
}

type answer struct {
	verdict Verdict
	block   *Block
}

// A Block is one request that would be refused, or may be: what asked for it,
// how often and in how many runs, and the line that would refuse it.
type Block struct {
	Verdict         Verdict
	Cap, Op, Target string
	Tool            string
	Doubt           Doubt
	Layer           string   // the candidate that refuses
	Pos             caps.Pos // where it says so
	Code            caps.Code
	Count           int64
	Runs            int
	Run             string // the first example
	Seq, RunSeq     uint64

	inRun string // the last one that was counted
	runs  map[string]bool
}

// Everything is what a layer is asked against: whatever a request names. Raw
// are the domains whose masks are lifted, which no wider grant has.
func Everything(raw []string) []caps.Entry {
	var list []caps.Entry
	for f := range caps.NumFamilies {
		g := caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"}
		if f == caps.FS {
			g.Scope = "/"
		}
		list = append(list, caps.Entry{Grant: g})
	}
	for _, d := range raw {
		list = append(list, caps.Entry{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: d + "_raw"}})
	}
	return list
}

// New makes a Replay of candidates: [Everything], narrowed by them.
func New(candidates caps.Set) *Replay {
	return &Replay{
		layer: candidates, runs: map[string]*running{}, memo: map[string]answer{},
		blocks: map[string]*Block{},
	}
}

// Begin says what a run held, by which methods that no record names are told.
func (f *Replay) Begin(r Run) {
	run := f.of(r.ID)
	run.held, run.begun = r.Held, true
}

func (f *Replay) of(run string) *running {
	if f.last != nil && f.last.id == run {
		return f.last
	}
	r := f.runs[run]
	if r == nil {
		r = &running{id: strings.Clone(run)}
		f.runs[r.id] = r
	}
	f.last = r
	return r
}

// Decide decides one record again. Its words may be views.
func (f *Replay) Decide(r *Record) Verdict {
	run := f.of(r.Run)
	a := f.answer(run, r)
	f.counts[a.verdict]++
	run.blocked = run.blocked || a.verdict == Blocked
	if !r.Deny && r.Op != "environ_get" { // which is noted, and no call
		run.allowed++
	}
	if b := a.block; b != nil {
		if b.Count++; b.Run == "" {
			b.Run, b.Seq, b.RunSeq = run.id, r.Seq, r.RunSeq
		}
		b.in(run.id)
	}
	return a.verdict
}

// in counts a run once. Most requests are of one run.
func (b *Block) in(run string) {
	switch {
	case b.inRun == run:
		return
	case b.inRun != "" && b.runs == nil:
		b.runs = map[string]bool{b.inRun: true}
	}
	b.inRun = run
	if b.runs == nil {
		b.Runs = 1
		return
	}
	b.runs[run] = true
	b.Runs = len(b.runs)
}

// End says what a run used, by the words of its last record.
func (f *Replay) End(run string, usage map[string]int64) {
	if r := f.of(run); r.begun {
		r.missing = max(0, usage["allowed"]-r.allowed)
	}
	for _, l := range []struct {
		limit caps.Limit
		word  string
	}{
		{caps.WallTimeMS, "wall_ms"},
		{caps.CPUFuel, "fuel"},
		{caps.MemoryBytes, "memory_bytes"},
		{caps.HostcallsMax, "hostcalls"},
	} {
		if most, set := f.layer.Limits().Get(l.limit); set && usage[l.word] > most {
			f.passed = append(f.passed, Passed{strings.Clone(run), l.limit, usage[l.word], most})
		}
	}
}

// answer knows by heart what was asked before. What a rename asks for is told
// by the order of records, and what is told by what a run held is its own.
func (f *Replay) answer(run *running, r *Record) answer {
	if r.Op == "path_rename" {
		return f.decide(run, r)
	}
	k := f.key[:0]
	for _, s := range [...]string{r.Cap, r.Op, r.Tool, r.Target, r.Reason} {
		k = append(append(k, s...), 0)
	}
	if r.Deny {
		k = append(k, 'd')
	}
	if r.Cap == caps.AuditName(caps.Net, 0) || r.Cap == caps.ConnectName {
		k = append(k, run.id...)
	}
	f.key = k
	if a, ok := f.memo[string(k)]; ok {
		return a
	}
	a := f.decide(run, r)
	if len(f.memo) < maxMemo {
		f.memo[string(k)] = a
	}
	return a
}

// maxMemo bounds what is known by heart, maxBlocks what is told one by one: what
// is in the log agents chose.
const (
	maxMemo   = 1 << 17
	maxBlocks = 10_000
)

func (f *Replay) decide(run *running, r *Record) answer {
	a, ok := run.reader.Ask(&r.Decision)
	switch {
	case !ok:
		return answer{verdict: NoAsk}
	case r.Deny:
		return answer{verdict: Denied}
	case a.Doubt == Name:
		return answer{Depends, f.block(r, Block{Verdict: Depends, Doubt: Name})}
	}
	if scope := toolOf(&r.Decision); scope != "" {
		if e := f.layer.Explain(caps.Request{Family: caps.Tool, Name: scope}); !e.Allow {
			return answer{Blocked, f.block(r, refusal(e, Blocked, Exact))}
		}
	}
	return f.modes(run, r, a)
}

// modes asks in every mode that the request may have had.
func (f *Replay) modes(run *running, r *Record, a Ask) answer {
	left := narrowed(run.held, a)
	var refused *caps.Explanation
	some := false
	for m := range caps.Mode(32) {
		if !left.Has(m) {
			continue
		}
		q := caps.Request{Family: a.Family, Mode: m, Name: a.Name}
		d := f.layer.Check(q)
		if a.Tree {
			d = f.layer.CheckTree(q)
		}
		if d.Allow {
			some = true
			continue
		}
		if refused == nil {
			if a.Tree {
				q.Name = f.layer.Scope(q.Family, d.Scope)
			}
			e := f.layer.Explain(q)
			refused = &e
		}
	}
	switch {
	case refused == nil:
		return answer{verdict: Stays}
	case some:
		return answer{Depends, f.block(r, refusal(*refused, Depends, a.Doubt))}
	}
	return answer{Blocked, f.block(r, refusal(*refused, Blocked, Exact))}
}

func refusal(e caps.Explanation, v Verdict, d Doubt) Block {
	b := Block{Verdict: v, Doubt: d, Code: e.Code}
	for _, vote := range e.Votes {
		if !vote.Allow {
			b.Layer, b.Pos = vote.Layer, vote.Pos
			break
		}
	}
	return b
}

func toolOf(d *Decision) string {
	name := d.Tool
	if name == "" {
		name = d.Op
	}
	scope, known := caps.ToolScope(name)
	if !known && d.Tool == "" {
		return ""
	}
	return scope
}

// block is the one Block of what a record asked for.
func (f *Replay) block(r *Record, b Block) *Block {
	b.Cap, b.Op, b.Target, b.Tool = strings.Clone(r.Cap), strings.Clone(r.Op), strings.Clone(r.Target),
		strings.Clone(r.Tool)
	key := strings.Join([]string{b.Cap, b.Op, b.Tool, b.Target, b.Pos.String(), string(rune('0' + b.Verdict))}, "\x00")
	if have := f.blocks[key]; have != nil {
		return have
	}
	if len(f.blocks) == maxBlocks {
		f.more++
		return nil
	}
	f.blocks[key] = &b
	return &b
}

// A Forecast is what came of all records.
type Forecast struct {
	Runs, RunsBlocked       int
	Stays, Blocked, Depends int64
	Denied, NoAsk           int64
	Blocks                  []*Block // what would be refused, then what may be; the most frequent first
	More                    int64    // requests like those in Blocks, of which there are too many
	Passed                  []Passed
	// Unrecorded is how many runs there are that not all allowed calls are
	// recorded of.
	Unrecorded int
}

// Passed is a run that used more than a candidate's limit leaves.
type Passed struct {
	Run        string
	Limit      caps.Limit
	Used, Most int64
}

// Forecast sums up.
func (f *Replay) Forecast() Forecast {
	out := Forecast{
		Runs: len(f.runs), Stays: f.counts[Stays], Blocked: f.counts[Blocked], Depends: f.counts[Depends],
		Denied: f.counts[Denied], NoAsk: f.counts[NoAsk], More: f.more, Passed: f.passed,
	}
	for _, r := range f.runs {
		if r.blocked {
			out.RunsBlocked++
		}
		if r.missing > 0 {
			out.Unrecorded++
		}
	}
	for _, b := range f.blocks {
		if b.Count > 0 {
			out.Blocks = append(out.Blocks, b)
		}
	}
	slices.SortFunc(out.Blocks, func(a, b *Block) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Seq, b.Seq),
			strings.Compare(a.Target, b.Target))
	})
	return out
}
