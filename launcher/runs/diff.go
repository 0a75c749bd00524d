package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/kb"
)

// Answers are what one run was answered to one thing.
type Answers struct {
	Allowed int    `json:"allowed"`
	Denied  int    `json:"denied"`
	Reason  string `json:"reason,omitempty"` // of the newest denial
}

// A Difference is what two runs were answered differently, or one of them alone asked.
type Difference struct {
	Cap    string  `json:"cap"`
	Target string  `json:"target"`
	A      Answers `json:"a"`
	B      Answers `json:"b"`
}

// A Diff is how two runs differ. How often they asked for the same is no difference.
type Diff struct {
	A     Line         `json:"a"`
	B     Line         `json:"b"`
	Calls []Difference `json:"calls"`
	Cut   bool         `json:"-"` // no more than the first records of each were compared
}

// Same reports whether the runs ended alike and were answered alike.
func (d *Diff) Same() bool {
	return len(d.Calls) == 0 && d.A.Outcome == d.B.Outcome && d.A.ExitCode == d.B.ExitCode
}

// Compare compares the runs a and b.
func Compare(ctx context.Context, s Log, a, b string, now time.Time) (*Diff, error) {
	return Comparison{Log: s, Now: now}.Of(ctx, a, b)
}

// A Comparison compares runs of a log.
type Comparison struct {
	Log  Log
	Now  time.Time
	Most int // records of each run that are compared; 0: all
}

// Of compares the runs a and b.
func (c Comparison) Of(ctx context.Context, a, b string) (*Diff, error) {
	type asked struct{ cap, target string }
	answers, d := map[asked]*[2]Answers{}, &Diff{Calls: []Difference{}}
	for i, id := range []string{a, b} {
		line, err := One(ctx, c.Log, id, c.Now)
		if err != nil {
			return nil, err
		}
		if d.B = line; i == 0 {
			d.A = line
		}
		n := 0
		for r, err := range c.Log.Audit(ctx, kb.Filter{Run: id}) {
			if err != nil {
				return nil, err
			}
			if n++; c.Most > 0 && n > c.Most {
				d.Cut = true
				break
			}
			if r.Decision == nil || !r.Decision.Asked() {
				continue
			}
			k := asked{r.Decision.Cap, r.Decision.Target}
			if answers[k] == nil {
				answers[k] = &[2]Answers{}
			}
			answers[k][i].add(r.Denied(), r.Decision.Reason)
		}
	}
	for k, both := range answers {
		if both[0].unlike(&both[1]) {
			d.Calls = append(d.Calls, Difference{k.cap, k.target, both[0], both[1]})
		}
	}
	slices.SortFunc(d.Calls, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.Cap, y.Cap), cmp.Compare(x.Target, y.Target))
	})
	return d, nil
}

func (a *Answers) add(denied bool, reason string) {
	if !denied {
		a.Allowed++
		return
	}
	a.Denied++
	a.Reason = reason
}

func (a *Answers) unlike(b *Answers) bool {
	return (a.Allowed > 0) != (b.Allowed > 0) || (a.Denied > 0) != (b.Denied > 0) || a.Reason != b.Reason
}

// Text is the difference in one line of at most width characters.
func (d *Difference) Text(width int) string {
	tail := fmt.Sprintf(": %s, then %s", d.A.text(), d.B.text())
	head := d.Cap + " "
	return End(head+Middle(printable.Line(d.Target), max(20, width-len(head)-len(tail)))+tail, width)
}

func (a *Answers) text() string {
	switch {
	case a.Allowed == 0 && a.Denied == 0:
		return "not asked"
	case a.Denied == 0:
		return "allowed"
	case a.Allowed == 0:
		return "denied (" + a.Reason + ")"
	}
	return "allowed and denied (" + a.Reason + ")"
}
