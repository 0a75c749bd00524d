package draft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Learning is the policy that one run of a program is to write.
type Learning struct {
	File string

	program *compose.Program
	file    *os.File
}

// Learn begins to learn what a program uses, for a file that is not there yet, and that
// the program cannot write.
func Learn(r *compose.Reader, p *compose.Program) (*Learning, error) {
	file := p.Learn.File
	dir, err := r.WorkingDir()
	if err != nil {
		return nil, compose.InputErr(err)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, compose.Usagef("--learn %s: it is there already; name a new file", file)
	}
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("making the file of --learn: %w", err))
	}
	p.Learn.File = file
	return &Learning{file, p, f}, nil
}

// Close gives the file up where nothing was written.
func (l *Learning) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}

// Learnable refuses what the policy of a learnt run would lose, and so allow more.
func Learnable(c *compose.Composition) error {
	plan, err := run.NewPlan(c.Policy)
	switch {
	case err != nil:
		return nil // the launch itself says what is wrong
	case len(c.Policy.Routes) > 0:
		return compose.Usagef("--learn writes no [[inject]], which this policy has: learn without, and add it to the file")
	case len(plan.Effective.Leases()) > 0:
		return compose.Usagef("--learn writes no [leases], which this policy has: learn without, and add them to the file")
	}
	return nil
}

// Write writes the least policy that a run used, and no file where that would allow
// anything that the run did not hold.
func (l *Learning) Write(ctx context.Context, d Recorded, c *compose.Composition, id string) (*ask.Suggestion, error) {
	held, err := run.NewPlan(c.Policy)
	if err != nil {
		return nil, err
	}
	w := ask.Wanted{Learnt: l.decisions(), Limits: c.Policy.BaseLimits.Map(), Notes: []string{
		"a folder stands for what was made, moved or removed in it: such names, and temporary ones, may be others the next time",
	}}
	if file := l.program.Learn.Wrote(); file != "" {
		w.AnyProgram = "it executed " + file + ", which it may have written: such files are executed with this alone"
	}
	made, err := d.Suggest(ctx, []ask.Used{{Run: id, Name: id}}, "", w)
	if err != nil {
		return nil, err
	}
	if err := within(made.Policy, held.Effective, w.Options); err != nil {
		return nil, err
	}
	if _, err := l.file.WriteString(made.Policy); err != nil {
		return nil, err
	}
	err, l.file = l.file.Close(), nil
	return made, err
}

// decisions are the uses as records would have them.
func (l *Learning) decisions() []analysis.Decision {
	var list []analysis.Decision
	for _, u := range l.program.Learn.Uses() {
		d := analysis.Decision{Cap: caps.AuditName(caps.FS, caps.Read), Op: u.How, Target: u.Path, Deny: u.Denied}
		if u.Write {
			d.Cap = caps.AuditName(caps.FS, caps.Write)
		}
		if u.Denied {
			d.Reason = caps.PathNotPermitted.String()
		}
		list = append(list, d)
	}
	return list
}

// within refuses a policy that grants what a set does not. That a host of plain HTTP is
// granted by https, too, no policy can leave out; it says so.
func within(text string, held caps.Set, opt policy.Options) error {
	p, findings := policy.ParseBase("learned", []byte(text), opt)
	if p == nil {
		return policy.AsError(findings)
	}
	var wider []string
	for _, e := range p.Entries {
		plain := e.Grant
		if plain.Family == caps.Net && plain.Modes&caps.HTTP != 0 {
			plain.Modes &^= caps.HTTPS
		}
		if !held.Covers(e.Grant) && !held.Covers(plain) {
			wider = append(wider, e.Grant.String())
		}
	}
	if len(wider) > 0 {
		slices.Sort(wider)
		return fmt.Errorf("nothing was written: what the program used cannot be said without granting more than the policy "+
			"of the run did: %s", strings.Join(slices.Compact(wider), ", "))
	}
	return nil
}
