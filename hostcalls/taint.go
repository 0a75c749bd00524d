package hostcalls

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// marks reports whether what comes of r is untrusted.
func (s *Sources) marks(r caps.Request) bool {
	if r.Family == caps.Net {
		return !s.Trusted.Check(r).Allow
	}
	return s.Untrusted.Check(r).Allow
}

// takeIn marks the run as holding what came of r, which is not to be trusted:
// source is its name, as records may show it. Nothing of it may reach the guest
// unless this returns nil.
func (t *taint) takeIn(f caps.Family, source string) error {
	if t.taintedBy() != "" {
		return nil
	}
	return t.cfg.Gate.Taint(gate.Cause(caps.SourceWord(f), t.values.scrubText(source)))
}

// takeInKeys marks the run when one of the keys that it is about to be shown was
// chosen by somebody who is not to be trusted: a key is text like any other.
func (t *taint) takeInKeys(domain string, entries []KBEntry) error {
	return takeInFirst(t, domain, entries, func(e *KBEntry) (string, bool) { return e.Key, e.Trusted })
}

// takeInHits is the same for what a search found: keys, and words of values.
func (t *taint) takeInHits(domain string, hits []KBHit) error {
	return takeInFirst(t, domain, hits, func(h *KBHit) (string, bool) { return h.Key, h.Trusted })
}

func takeInFirst[E any](t *taint, domain string, list []E, of func(*E) (key string, trusted bool)) error {
	marks := t.marksDomain(domain)
	for i := range list {
		if key, trusted := of(&list[i]); marks || !trusted {
			return t.takeInKey(domain, key)
		}
	}
	return nil
}

// takeInValue is the same for one value.
func (t *taint) takeInValue(r kbReq, v KBValue) error {
	if v.Trusted && !t.marksDomain(r.domain) {
		return nil
	}
	return t.takeInKey(r.domain, r.key)
}

// takeInKey marks the run because of what is stored at key, or of the key. The
// label is shown to whoever looks at what the run writes, so that it is masked
// whatever this run may see.
func (t *taint) takeInKey(domain, key string) error {
	if t.cfg.Masks != nil && t.taintedBy() == "" {
		masked, err := t.cfg.Masks.MaskKey(domain, key)
		if err != nil {
			return err
		}
		key = masked
	}
	return t.takeIn(caps.KBRead, domain+"/"+key)
}

func (t *taint) marksDomain(domain string) bool {
	return t.cfg.Sources.marks(caps.Request{Family: caps.KBRead, Name: domain})
}

// takeInFiles marks the run before a program starts that sees something of an
// untrusted source: what the program makes of it (a copy, a line of its output)
// has no mark. The start was judged before, as the read of a file is; what else
// the program gets is what the floor leaves.
func (t *taint) takeInFiles(r *execReq) error {
	if t.taintedBy() != "" || !t.cfg.Sources.Untrusted.Any(caps.FS) {
		return nil
	}
	holds, err := r.given(t.cfg.Gate.Set())
	if err != nil {
		return err
	}
	return t.takeInWhatIsSeen(holds, func(path string) bool { return t.cfg.Exec.SeesAll() || t.cfg.Exec.Shows(path) })
}

// TakeInProgram marks the run before the program starts that is its agent, as
// takeInFiles does: shows says which paths it sees whatever it holds.
func (t *taint) TakeInProgram(shows func(path string) bool) error {
	if t.taintedBy() != "" || !t.cfg.Sources.Untrusted.Any(caps.FS) {
		return nil
	}
	return t.takeInWhatIsSeen(t.cfg.Gate.Set(), shows)
}

func (t *taint) takeInWhatIsSeen(holds caps.Set, shows func(path string) bool) error {
	path, meets := t.cfg.Sources.meets(holds, shows)
	if !meets {
		return nil
	}
	return t.takeIn(caps.FS, path)
}

// meets is a file or folder that is untrusted and can be read by who holds these,
// or is shown it.
func (s *Sources) meets(holds caps.Set, shows func(path string) bool) (string, bool) {
	for _, path := range foldersOf(s.Untrusted) {
		if shows(path) || holds.Check(caps.Request{Family: caps.FS, Name: path}).Allow {
			return path, true
		}
	}
	for _, path := range foldersOf(holds) {
		if s.Untrusted.Check(caps.Request{Family: caps.FS, Name: path}).Allow {
			return path, true
		}
	}
	return "", false
}

// foldersOf are the files and folders of a set that can be read, by name; what lies
// in a folder has the same right unless it is one of them itself.
func foldersOf(set caps.Set) []string {
	var list []string
	for id := range int32(set.NumScopes(caps.FS)) {
		if set.Holds(id, caps.FS, caps.Read) {
			list = append(list, set.Scope(caps.FS, id))
		}
	}
	return list
}

// takeInOutput marks the run when what a program printed is not to be trusted.
func (t *taint) takeInOutput(r *execReq) error {
	for _, name := range slices.Concat(r.program.Via, []string{r.program.File, r.asked}) {
		if t.cfg.Sources.marks(caps.Request{Family: caps.Exec, Name: name}) {
			return t.takeIn(caps.Exec, r.program.File)
		}
	}
	return nil
}

// TakeInInput marks the run when what the agent is given to do is not to be
// trusted; it is called before the guest has it.
func (t *taint) TakeInInput() error {
	if !t.cfg.Sources.Input || t.taintedBy() != "" {
		return nil
	}
	return t.cfg.Gate.Taint(caps.SourceInput)
}

// taintedBy is the untrusted input that marked the run, "" if none has.
func (t *taint) taintedBy() string {
	cause, _ := t.cfg.Gate.Tainted()
	return cause
}

// taintHint says which input a refusal follows from, what would have had to be
// otherwise, and when it is over.
func taintHint(d gate.Denial) string {
	return fmt.Sprintf("this run has taken in %s, which is not to be trusted, and the floor %s takes %s away for the "+
		"rest of it; "+
		"the next launch begins without. If the source can be trusted the operator says so under [security.caps], or "+
		"leaves %s in caps/profiles/%s.toml",
		d.Label, d.Layer, d.Request.Family, d.Request, d.Layer)
}
