package log

import "runloop.dev/rlp/internal/record/audit"

// glance is [Filter.Match] for a record that was not decoded whole.
func (f *Filter) glance(g *audit.Glance) bool {
	switch {
	case f.Run != "" && string(g.Run) != f.Run, f.Agent != "" && string(g.Agent) != f.Agent:
		return false
	case f.SinceMS != 0 && g.UnixMS < f.SinceMS, f.After != 0 && g.Seq <= f.After, f.AfterOfRun != 0 &&
		g.RunSeq <= f.AfterOfRun:
		return false
	case !f.decisionsOnly():
		return true
	case !g.Decided, f.Decision != "" && (f.Decision == "deny") != g.Deny, f.Asked && !g.Asked():
		return false
	}
	return f.Cap == "" || string(g.Cap) == f.Cap ||
		len(g.Cap) > len(f.Cap) && string(g.Cap[:len(f.Cap)]) == f.Cap && g.Cap[len(f.Cap)] == '.'
}
