package runs

import (
	"fmt"
	"time"

	"runloop.dev/rlp/launcher/run"
)

// Bounds of a summary: a page of a result, and five lines of denials, the last of
// which says that there are more.
const (
	mostResult  = 4 << 10
	mostDenials = 4
)

// Summary tells a person in a few lines how a run of the agent at path ended, what
// it returned where nothing was printed, and what it was denied, with the command
// that explains it.
func Summary(r *run.Report, denials []Denial, path string, width int) []string {
	lines := []string{fmt.Sprintf("%s in %s, %d allowed, %d denied (run %s)", r.Outcome, Took(r.Usage.WallMS),
		r.Usage.Allowed, r.Usage.Denied, Short(r.RunID))}
	if len(r.Result) > 0 && r.Usage.StdoutBytes == 0 {
		lines = append(lines, "result: "+End(string(r.Result), mostResult))
	}
	for i := range denials[:min(len(denials), mostDenials)] {
		lines = append(lines, "denied "+denials[i].Text(width-len("denied ")))
	}
	if more := len(denials) - mostDenials; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: rlp runs show %s", more, Short(r.RunID)))
	}
	if len(denials) > 0 {
		lines = append(lines, "why: "+Explain(path, r.RunID, &denials[0]))
	}
	return lines
}

// Took is how long a run took.
func Took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	return d.String()
}
